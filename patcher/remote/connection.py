"""Open the one connection to a host: how ssh is called, the agent's channel, and what rsync needs to share it.

A container is reached by its own client (`docker exec -i verl`), which runs here, or on a host that ssh reaches.

Where the user's own configuration names a `ControlPath`, and a connection is open there (`ssh -fN HOST`, or any shell
with `ControlMaster auto`), that one is used: nobody has to log in a second time, say with another one-time password.
Where none is, and a person at a terminal may be asked for one, the connection stays open for the commands after this.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from patcher.errors import HostError
from patcher.i18n import phrase
from patcher.remote import agent_program
from patcher.remote.channel import GREETING_SECONDS, Channel
from patcher.remote.failures import connection_error
from patcher.remote.host import Host

TYPING_SECONDS = 300.0
"""What a user may take to type a password."""
CONNECT_SECONDS = 15
PERSIST_SECONDS = 600
"""How long a connection that a person has logged in for stays open after the last command."""
ALIVE_SECONDS = 5
ALIVE_MISSED = 4
"""A silent connection counts as cut after ALIVE_SECONDS * ALIVE_MISSED seconds."""
_LONGEST = 70
"""Bytes of a folder's path: a socket's may have 103, and ssh adds some."""
_WHERE = (b"hostname", b"user", b"port", b"proxyjump", b"proxycommand", b"hostkeyalias")
_USUAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


@dataclass(frozen=True, slots=True)
class Ssh:
    """The options that every call of ssh for one host shares."""

    host: Host
    control: Path | None
    """The socket of our connection; None where the user's own is shared, which their configuration names."""
    persist: bool = False
    """Whether our connection stays open for later commands."""
    there: bool = False
    """Whether it is open, so that nobody logs in."""

    def first_command(self, command: str) -> list[str]:
        """Open the connection if it is not open, and run `command` on it. The host's name comes last, behind `--`."""
        first = self.shared_command()[1:] if self.there else [*self._options(), "-o", "ControlMaster=yes"]
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
        """ssh over the connection that is open, without host and command: for rsync's `--rsh`."""
        return ["ssh", *self._options(), "-o", "ControlMaster=no"]

    def _options(self) -> list[str]:
        options = [part for name, value in self._values().items() for part in ("-o", f"{name}={value}")]
        return options + (["-p", str(self.host.port)] if self.host.port else [])

    def _values(self) -> Mapping[str, str]:
        """What must hold whatever the user's configuration says."""
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
    """Whether ssh can ask its user for a password, or whether a new host's key is right."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection. `ssh` is None where files cannot come by rsync: for this machine, and for a container."""

    host: Host
    channel: Channel
    ssh: Ssh | None = None


@contextlib.contextmanager
def connect(host: Host) -> Iterator[Connection]:
    """Reach the host and start the agent there. Raises HostError; UnreachableError where it may answer later."""
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
        caller = _caller(host, stack)
        command = agent_program.COMMAND
        if host.via:
            command = agent_program.VIA_COMMAND
            first = os.fsencode("".join(f"{word}\n" for word in (str(len(host.via)), *host.via))) + first
        with contextlib.closing(_start(host, caller.first_command(command), first)) as channel:
            yield Connection(host, channel, None if host.via else caller)


def _caller(host: Host, stack: contextlib.ExitStack) -> Ssh:
    """How ssh is called: on the user's open connection, on ours of an earlier command, or on a new one."""
    own = Ssh(host, None, there=True)
    if own.is_open():
        return own
    socket = _lasting_socket(host) if interactive() else None
    if socket is None:
        return Ssh(host, Path(stack.enter_context(_short_folder())) / "c")
    ours = Ssh(host, socket, persist=True)
    if ours.is_open():
        return replace(ours, there=True)
    socket.unlink(missing_ok=True)  # Of one that was killed: ssh would open none beside it.
    return ours


def _lasting_socket(host: Host) -> Path | None:
    """Where the connection of a person is found again by the next command; None where no folder is ours alone."""
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
    """A name for where ssh would go, and as whom; None where it does not say."""
    port = ["-p", str(host.port)] if host.port else []
    command = ["ssh", "-G", *port, "--", host.target]
    try:
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CONNECT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line for line in asked.stdout.splitlines() if line.split(b" ")[0] in _WHERE]
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:16] if lines and asked.returncode == 0 else None


def _start(host: Host, command: list[str], first: bytes) -> Channel:
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
    """The Python to train with, which is tried first to start the agent with: the host's own may be too old."""
    return python if python and "\n" not in python else ""


def _short_folder() -> TemporaryDirectory[str]:
    """Where the socket of the connection can be made. Raises HostError where it cannot."""
    named = [os.environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR")]
    folders = [
        folder for folder in (*named, *_USUAL) if folder.startswith("/") and len(os.fsencode(folder)) <= _LONGEST
    ]
    for folder in folders:
        with contextlib.suppress(OSError):
            return TemporaryDirectory(prefix="uky-", dir=folder, ignore_cleanup_errors=True)
    raise HostError(
        phrase("no folder for the socket of an ssh connection"),
        cause=phrase("none of these can be written to: {folders}", folders=", ".join(folders)),
        advice="Set TMPDIR to a folder on a local disk with a short path that you may write to.",
    )
