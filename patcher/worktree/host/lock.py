"""One migration at a time into one tree: flock on `.uky-patch/host/lock`, with a note that says who holds it."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from typing import Any, Dict, Iterable

from patcher.messages import Refusal, phrase, why
from patcher.worktree import locks
from patcher.worktree.json_text import parse_json

Note = Dict[str, Any]
"""who, machine, since, purpose, run: strings; node, pid: the agent's own. `client` is told back as it came."""

PATIENCE = 100.0
"""Seconds to wait for an agent that has lost its client: it ends what it is doing, and then itself."""


class Lock:
    """A lock that is held until `close`, or until the process ends."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def close(self) -> None:
        """Let go, and take the note out."""
        if self._fd >= 0:
            _write(self._fd, b"")
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Let go, and remove the file."""
        if self._fd >= 0:
            os.unlink(self.path)
            self.close()


def take(path: str, note: Note, over: Iterable[str]) -> Lock:
    """The lock at `path`, signed with `note`. A holder whose run is among `over` is an orphan, and waited for.

    Raises:
        Held: somebody else holds it.
        Refusal: the file system has no locks.
        FileNotFoundError: the folder is not there, or was removed meanwhile by who held the lock.
        OSError: the file cannot be made.
    """
    deadline = time.monotonic() + PATIENCE
    signed = dict(note, node=platform.node(), pid=os.getpid())
    while True:
        fd = locks.open_lock(path)
        try:
            while not _try(fd, path):
                owner = _owner(fd)
                if str(owner.get("run")) not in over or time.monotonic() > deadline:
                    raise Held(path, owner)
                _hurry(owner, fd)
                time.sleep(0.1)
            if locks.is_at(fd, path):
                _write(fd, json.dumps(signed).encode("ascii"))
                return Lock(path, fd)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # Its holder has removed it.


class Held(Exception):  # noqa: N818
    """Somebody else holds the lock; `owner` is their note, empty where they have not written it yet."""

    def __init__(self, path: str, owner: Note) -> None:
        super().__init__(path)
        self.owner = owner


def _try(fd: int, path: str) -> bool:
    try:
        return locks.try_lock(fd)
    except locks.LockUnsupportedError as error:
        advice = phrase("Mount it with flock (Lustre: -o flock), or name a folder on another disk.")
        cause = phrase(
            "the file system has no locks ({reason}), so two migrations could write at once", reason=why(error)
        )
        os.unlink(path)
        raise Refusal("unlockable", phrase("{path}: cannot be locked", path=path), cause, advice) from error


def _owner(fd: int) -> Note:
    try:
        note = parse_json(os.pread(fd, 4096, 0))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _write(fd: int, content: bytes) -> None:
    try:  # The note is a courtesy: the lock holds without it.
        os.ftruncate(fd, 0)
        os.pwrite(fd, content, 0)
    except OSError:
        pass


def _hurry(owner: Note, fd: int) -> None:
    """Tell an orphaned agent that its client is gone. Only a process of ours that has this very file open is told."""
    pid = owner.get("pid")
    if owner.get("node") != platform.node() or not isinstance(pid, int) or pid <= 1 or pid == os.getpid():
        return
    ours = os.fstat(fd)
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.path.samestat(ours, os.stat(f"/proc/{pid}/fd/{name}")):
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)
                return
    except OSError:
        return
