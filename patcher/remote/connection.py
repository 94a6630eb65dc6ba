"""Open the one connection to a host: how ssh is called, the agent's channel, and what rsync needs to share it.

A container is reached by its own client (`docker exec -i verl`), which runs here, or on a host that ssh reaches.

Where the user's own configuration names a `ControlPath`, and a connection is open there (`ssh -fN HOST`, or any shell
with `ControlMaster auto`), that one is used: nobody has to log in a second time, say with another one-time password.
Where none is, and a person at a terminal may be asked for one, the connection stays open for the commands after this.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.errors import HostError
from patcher.i18n import phrase
from patcher.remote import agent_program
from patcher.remote.channel import GREETING_SECONDS, Channel
from patcher.remote.failures import connection_error
from patcher.remote.host import Host

TYPING_SECONDS = 300.0
"""Seconds that a user may take to type a password. A guess."""
CONNECT_SECONDS = 15
"""Seconds that ssh may take to reach the host's sshd, and that a question to ssh itself may take. A guess."""
PERSIST_SECONDS = 600
"""Seconds for which a connection that a person has logged in for stays open after the last command. A guess."""
ALIVE_SECONDS = 5
ALIVE_MISSED = 4
"""ssh gives a silent connection up after ALIVE_SECONDS * ALIVE_MISSED seconds: as long as `channel.SILENT_SECONDS`."""
_LONGEST = 70
"""The most bytes of the path of a folder for a socket: that of the socket may have 107 (macOS: 103), and ssh adds 17
while it makes the socket."""
_WHERE = (b"hostname", b"user", b"port", b"proxyjump", b"proxycommand", b"hostkeyalias")
"""Options of ssh that say which machine a name leads to, and as whom."""
_USUAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
"""Folders for a socket where neither XDG_RUNTIME_DIR nor TMPDIR will do."""


@dataclass(frozen=True, slots=True)
class Ssh:
    """How ssh is called for one host. All calls share one connection, by OpenSSH's `ControlMaster`."""

    host: Host
    control: Path | None
    """The socket of our connection; None where the user's own connection is shared, whose socket their configuration
    names."""
    persist: bool = False
    """Whether our connection stays open for later commands."""
    is_shared: bool = False
    """Whether the connection was open before this command, so that nobody has to log in."""

    def first_command(self, command: str) -> list[str]:
        """The words that run `command` on the host, and open the connection unless it is open."""
        first = self.shared_command()[1:] if self.is_shared else [*self._options(), "-o", "ControlMaster=yes"]
        return ["ssh", *first, "-T", "--", self.host.target, command]

    def is_open(self) -> bool:
        """Whether somebody listens at the socket."""
        command = [*self.shared_command(), "-O", "check", "--", self.host.target]
        try:
            asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return asked.returncode == 0

    def shared_command(self) -> list[str]:
        """The words that call ssh over the open connection, without host and command: for rsync's `--rsh`."""
        return ["ssh", *self._options(), "-o", "ControlMaster=no"]

    def _options(self) -> list[str]:
        options = [part for name, value in self._values().items() for part in ("-o", f"{name}={value}")]
        return options + (["-p", str(self.host.port)] if self.host.port else [])

    def _values(self) -> Mapping[str, str]:
        """Options that overrule the user's configuration. A terminal, a command or a forwarding that it asks for
        would disturb the agent's protocol.
        """
        asking = interactive()
        persist = str(PERSIST_SECONDS) if self.persist else "no"
        return {
            **({"ControlPath": str(self.control), "ControlPersist": persist} if self.control else {}),
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": str(ALIVE_SECONDS),
            "ServerAliveCountMax": str(ALIVE_MISSED),
            "BatchMode": "no" if asking else "yes",
            "StrictHostKeyChecking": "ask" if asking else "yes",
            "UpdateHostKeys": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "ForwardX11": "no",
            "ForwardAgent": "no",
            "PermitLocalCommand": "no",
            "ClearAllForwardings": "yes",
            "LogLevel": "ERROR",
            "EscapeChar": "none",
        }


def interactive() -> bool:
    """Whether ssh can ask its user for a password, and whether the key of a new host is right."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection. `ssh` is None where files cannot come by rsync: for this machine, and for a container."""

    host: Host
    channel: Channel
    ssh: Ssh | None = None


@contextlib.contextmanager
def connect(host: Host) -> Iterator[Connection]:
    """Reach the host and start the agent there. At the end the connection is closed.

    Raises HostError as `patcher.remote.failures` makes it: UnreachableError where the host may answer later, LoginError
    where a person has to do something.
    """
    if host.here:
        with contextlib.closing(
            _start(host, [sys.executable, *agent_program.OPTIONS, agent_program.BOOTSTRAP], b"")
        ) as channel:
            yield Connection(host, channel)
        return
    first = os.fsencode(_one_line(host.python)) + b"\n"
    with contextlib.ExitStack() as stack:
        if not host.target:
            with contextlib.closing(_start(host, [*host.via, "sh", "-c", agent_program.SCRIPT], first)) as channel:
                yield Connection(host, channel)
            return
        ssh = _ssh(host, stack)
        command = agent_program.COMMAND
        if host.via:
            command = agent_program.VIA_COMMAND
            first = os.fsencode("".join(f"{word}\n" for word in (str(len(host.via)), *host.via))) + first
        with contextlib.closing(_start(host, ssh.first_command(command), first)) as channel:
            yield Connection(host, channel, None if host.via else ssh)


def _ssh(host: Host, stack: contextlib.ExitStack) -> Ssh:
    """How ssh is called: on the user's open connection, on ours of an earlier command, or on a new one."""
    of_user = Ssh(host, None, is_shared=True)
    if of_user.is_open():
        return of_user
    socket = _lasting_socket(host) if interactive() else None
    if socket is None:
        return Ssh(host, stack.enter_context(_short_folder()) / "c")
    ours = Ssh(host, socket, persist=True)
    if ours.is_open():
        return replace(ours, is_shared=True)
    socket.unlink(missing_ok=True)  # Left by an ssh that was killed: a new one would not share its connection there.
    return ours


def _lasting_socket(host: Host) -> Path | None:
    """The socket by which the next command finds this connection again; None where no folder is this user's alone.

    Whoever can write into the folder could put a socket there, and read what is sent to the host.
    """
    name = _destination(host)
    if name is None:
        return None
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"):  # noqa: S108
        folder = Path(parent, f"uky-patch-{os.getuid()}")
        if not parent.startswith("/") or len(os.fsencode(folder)) > _LONGEST:
            continue
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return folder / name
    return None


def _destination(host: Host) -> str | None:
    """A name that is equal for two calls of ssh which lead to the same machine as the same user; None where ssh does
    not say. `ssh -G` prints the options that it would use.
    """
    port = ["-p", str(host.port)] if host.port else []
    command = ["ssh", "-G", *port, "--", host.target]
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line for line in asked.stdout.splitlines() if line.split(b" ")[0] in _WHERE]
    from patcher.worktree.hashing import digest_of  # At a terminal alone; it loads OpenSSL.

    return digest_of(b"\n".join(lines))[:16] if lines and asked.returncode == 0 else None


def _start(host: Host, command: list[str], first: bytes) -> Channel:
    """Start the agent by `command`, to which `first` is written before the agent's program."""
    timeout = GREETING_SECONDS + (TYPING_SECONDS if not host.here and interactive() else 0.0)
    try:
        return Channel(command, first, lambda end: connection_error(host, end), timeout=timeout)
    except FileNotFoundError as error:
        raise HostError(
            phrase("{program}: is not installed on this machine", program=command[0]),
            advice="Install the OpenSSH client (Debian, Ubuntu: openssh-client)."
            if host.target
            else phrase("Install it, or correct via in [hosts.{host}]: its first word is a program.", host=host.name),
        ) from error


def _one_line(python: str | None) -> str:
    """The line that `SCRIPT` reads: the Python to train with, which is tried first, as python3 there may be too old."""
    return python if python and "\n" not in python else ""


@contextlib.contextmanager
def _short_folder() -> Iterator[Path]:
    """A new folder for the socket of the connection, of this user alone; removed at the end.

    Without tempfile, which loads OpenSSL before ssh is started. Raises HostError where none can be made.
    """
    named = [os.environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR")]
    folders = [
        folder for folder in (*named, *_USUAL) if folder.startswith("/") and len(os.fsencode(folder)) <= _LONGEST
    ]
    for folder in folders:
        made = Path(folder, f"uky-{os.urandom(8).hex()}")
        try:
            made.mkdir(mode=0o700)
        except OSError:
            continue
        try:
            yield made
        finally:
            from shutil import rmtree

            rmtree(made, ignore_errors=True)
        return
    raise HostError(
        phrase("no folder for the socket of an ssh connection"),
        cause=phrase("none of these can be written to: {folders}", folders=", ".join(folders)),
        advice="Set TMPDIR to a folder on a local disk with a short path that you may write to.",
    )
