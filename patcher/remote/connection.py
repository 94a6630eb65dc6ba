"""Open the one connection to a host: the agent's channel, and what rsync needs to ride on it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from patcher.errors import HostError
from patcher.i18n import phrase
from patcher.remote import ending, payload, ssh
from patcher.remote.channel import GREETING_SECONDS, Channel
from patcher.remote.host import Host

TYPING_SECONDS = 300.0
"""What a user may take to type a password."""
_LONGEST = 70
"""Bytes of a folder's path: a socket's may have 103, and ssh adds some."""
_USUAL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection. `ssh` is None for this machine."""

    host: Host
    channel: Channel
    ssh: ssh.Ssh | None = None


@contextlib.contextmanager
def connect(host: Host) -> Iterator[Connection]:
    """Reach the host and start the agent there. Raises HostError; UnreachableError where it may answer later."""
    if host.here:
        with contextlib.closing(_start(host, [sys.executable, *payload.OPTIONS, payload.BOOTSTRAP], b"")) as channel:
            yield Connection(host, channel)
        return
    with _short_folder() as folder:
        caller = ssh.Ssh(host, Path(folder) / "c")
        first = os.fsencode(_absolute(host.python)) + b"\n"
        with contextlib.closing(_start(host, caller.master(payload.COMMAND), first)) as channel:
            yield Connection(host, channel, caller)


def _start(host: Host, command: list[str], first: bytes) -> Channel:
    patience = GREETING_SECONDS + (TYPING_SECONDS if not host.here and ssh.interactive() else 0.0)
    try:
        return Channel(command, first, lambda how: ending.error(host, how), patience=patience)
    except FileNotFoundError as error:
        raise HostError(
            phrase("{program}: is not installed on this machine", program=command[0]),
            advice="Install the OpenSSH client (Debian, Ubuntu: openssh-client).",
        ) from error


def _absolute(python: str | None) -> str:
    """A Python to start the agent with, where the one to train with is named by its place."""
    return python if python and python.startswith("/") and "\n" not in python else ""


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
