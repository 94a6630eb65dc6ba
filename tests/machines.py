"""A real host for tests: sshd on loopback, a user of its own with a home of its own, and `ssh` that knows the way."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests import tools

SSHD = tools.find("sshd") or "/usr/sbin/sshd"
REQUIRED = "UKY_PATCH_REQUIRE_HOSTS"
"""Where this variable is set, a host that cannot be made is a failure and not a reason to skip."""
USERS = "uky"
"""What the names of the hosts' users begin with; the process that made them comes next."""


@dataclass(frozen=True)
class Machine:
    """A host that runs. `ssh NAME` reaches it, for whoever has `shims` first in PATH."""

    name: str
    address: str
    port: int
    user: str
    home: Path
    folder: Path
    """Keys, configuration, log: nothing of it is known to the host."""
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list, compare=False)
    """The sshd that listens now comes last."""

    @property
    def pid(self) -> int:
        """Of the sshd that listens now, in whose namespaces the host is; 0 before there is one."""
        return self.daemons[-1].pid if self.daemons else 0

    @property
    def shims(self) -> Path:
        return self.folder / "bin"

    @property
    def config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def log(self) -> str:
        return (self.folder / "sshd.log").read_text()

    @property
    def calls(self) -> list[str]:
        """The command lines that ssh was called with so far, but for questions to a socket here."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.folder / "calls").read_text().splitlines()
            return [line for line in lines if " -O check " not in line]
        return []

    def do(self, *command: str, check: bool = True) -> str:
        """Run a command there as its user, not over ssh, and give its output."""
        inside = ["nsenter", f"--target={self.pid}", "--mount", "--net", f"--wdns={self.home}"] if self.pid else []
        user = ["setpriv", f"--reuid={self.user}", f"--regid={pwd.getpwnam(self.user).pw_gid}", "--clear-groups"]
        done = subprocess.run(
            [*inside, *user, "env", "--", *command],
            check=check,
            capture_output=True,
            text=True,
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"], "USER": self.user},
        )
        return done.stdout

    @contextlib.contextmanager
    def no_sshd(self) -> Iterator[None]:
        """Nothing listens there for as long as this lasts, and what was connected is cut; its jobs run on."""
        daemon = self.daemons[-1]
        daemon.kill()
        daemon.wait()
        subprocess.run(["pkill", "-KILL", "-u", self.user, "^sshd"], check=False)
        yield
        self.daemons.append(subprocess.Popen(daemon.args))
        _await(self, self.daemons[-1], waits=True)

    def sees(self, path: Path) -> Path:
        """The way from here to an absolute path there, past mounts that only the host has."""
        return Path(f"/proc/{self.pid}/root") / path.relative_to("/")

    def also(self, alias: str, address: str, port: int, *, options: Sequence[str] = ()) -> None:
        """Reach the same host under another name, at another address. `options`: further lines of configuration."""
        text = (self.folder / "ssh_config").read_text()
        lines = "".join(f"  {option}\n" for option in options)
        block = _block(alias, address, port, self) + f"  HostKeyAlias [{self.address}]:{self.port}\n"
        self.config.write_text(f"Host {alias}\n{lines}" + block.partition("\n")[2] + text)

    def pids(self) -> list[int]:
        """What its user runs, sshd's own processes for its sessions included; not what has ended and is not buried."""
        done = subprocess.run(["ps", "-o", "pid=,stat=", "-u", self.user], check=False, capture_output=True, text=True)
        found = [line.split() for line in done.stdout.splitlines()]
        return [int(pid) for pid, state in found if not state.startswith("Z")]

    def quiet(self, within: float = 30.0) -> None:
        """Wait until its user runs nothing any more: a cut connection's request is finished first."""
        deadline = time.monotonic() + within
        while self.pids():
            if time.monotonic() > deadline:
                shown = subprocess.run(["ps", "-o", "pid,stat,args", "-u", self.user], capture_output=True, text=True)
                raise TimeoutError(f"still runs there after {within:g} s:\n{shown.stdout}")
            time.sleep(0.05)

    def clear(self) -> None:
        """End all that its user runs: what a test left there is none of the next one's."""
        deadline = time.monotonic() + 10
        while self.pids() and time.monotonic() < deadline:
            subprocess.run(["pkill", "-KILL", "-u", self.user], check=False)
            time.sleep(0.02)


def why_not() -> str:
    """Why no host can be made here; empty where one can."""
    if os.geteuid() != 0:
        return "another user needs root"
    return tools.missing("ssh", "sshd", "rsync", "setpriv", "useradd", "pgrep", "unshare", "nsenter")


_number = itertools.count()
"""Two machines of one process may have one name; their users may not."""


@contextlib.contextmanager
def machine(
    folder: Path,
    name: str = "loop",
    *,
    address: str = "127.0.0.1",
    within: str = "",
    python: Path | None = None,
    mounts: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Machine]:
    """A host whose sshd listens at `address`, in the network namespace `within` if one is named.

    Args:
        python: an interpreter that is to be `python3` there.
        variables: what every login there has in its environment.
        mounts: arguments of `mount`, one command each, `{home}` filled in; only the host sees what they do.
    """
    user = f"{USERS}{os.getpid() % 100000}{name[:8]}{next(_number)}"
    home = Path("/home") / user
    remove_user(user)  # Of a run that was killed, whose process had the same number.
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", user], check=True)
    found = Machine(name, address, _free_port(), user, home, folder)
    try:
        _configure(found, python, variables)
        prefix = ["ip", "netns", "exec", within] if within else []
        Path("/run/sshd").mkdir(exist_ok=True)
        sshd = [SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")]
        if mounts:
            steps = " && ".join(f"mount {words.format(home=home)}" for words in mounts)
            prefix += ["unshare", "--mount", "sh", "-c", f'{steps} && exec "$0" "$@"']
        found.daemons.append(subprocess.Popen([*prefix, *sshd]))
        _await(found, found.daemons[-1], waits=not within)
        yield found
    finally:
        for daemon in found.daemons:
            daemon.terminate()
            daemon.wait()
        remove_user(user)


def remove_user(user: str) -> None:
    """With all that it runs, and its home."""
    subprocess.run(["pkill", "-KILL", "-u", user], check=False)
    for _ in range(50):
        done = subprocess.run(["userdel", "--remove", user], check=False, capture_output=True)
        if done.returncode in (0, 6, 12):
            return
        time.sleep(0.1)


def joined(folder: Path, hosts: Sequence[Machine]) -> Path:
    """A folder for PATH with an `ssh` that knows all of `hosts`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "ssh_config"
    config.write_text("".join(f"Include {host.config}\n" for host in hosts))
    _shim(folder / "bin", config, folder / "calls")
    return folder / "bin"


def _block(name: str, address: str, port: int, host: Machine) -> str:
    return (
        f"Host {name}\n  HostName {address}\n  Port {port}\n  User {host.user}\n"
        f"  IdentityFile {host.folder}/user_key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {host.folder}/known_hosts\n  GlobalKnownHostsFile none\n"
    )


def _configure(host: Machine, python: Path | None, variables: Mapping[str, str]) -> None:
    host.folder.mkdir(parents=True, exist_ok=True)
    for key in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.folder / key)], check=True)
    place = host.home / ".ssh"
    place.mkdir(mode=0o700)
    shutil.copy(host.folder / "user_key.pub", place / "authorized_keys")
    identity = pwd.getpwnam(host.user)
    for path in (place, place / "authorized_keys"):
        os.chown(path, identity.pw_uid, identity.pw_gid)
    public = (host.folder / "host_key.pub").read_text().split()
    (host.folder / "known_hosts").write_text(f"[{host.address}]:{host.port} {public[0]} {public[1]}\n")
    found = dict(variables)
    if python is not None:
        tools = host.home / "bin"
        tools.mkdir()
        (tools / "python3").symlink_to(python)
        found["PATH"] = f"{tools}:/usr/local/bin:/usr/bin:/bin"
    own = "SetEnv " + " ".join(f"{name}={value}" for name, value in found.items()) + "\n" if found else ""
    (host.folder / "sshd_config").write_text(
        f"Port {host.port}\nListenAddress {host.address}\nHostKey {host.folder}/host_key\nPidFile none\nUsePAM no\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\nMaxSessions 100\n{own}"
    )
    host.config.write_text(_block(host.name, host.address, host.port, host))
    _shim(host.shims, host.config, host.folder / "calls")


def _shim(folder: Path, config: Path, calls: Path) -> None:
    folder.mkdir()
    shim = folder / "ssh"
    real = shutil.which("ssh")
    shim.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$(printf "%s " "$@" | tr "\\n" " ")" >> {calls}\nexec {real} -F {config} "$@"\n'
    )
    shim.chmod(0o755)


def _await(host: Machine, daemon: subprocess.Popen[bytes], *, waits: bool) -> None:
    deadline = time.monotonic() + 10
    while True:
        if daemon.poll() is not None:
            raise RuntimeError(f"sshd ended with {daemon.returncode}: {host.log}")
        if waits:
            with contextlib.suppress(OSError), socket.create_connection((host.address, host.port), timeout=1):
                return
        elif "Server listening" in (host.log if (host.folder / "sshd.log").exists() else ""):
            return
        if time.monotonic() > deadline:
            raise RuntimeError("sshd does not listen")
        time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
