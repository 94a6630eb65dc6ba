"""One writer at a time: flock on `.uky-patch/lock`, with a note that says who holds it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

from patcher.errors import TreeError
from patcher.i18n import Phrase, listed, phrase
from patcher.tree import disk
from patcher.tree.ledger import now
from patcher.tree.trouble import tree_error
from patcher.worktree import locks
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.tree.storage import Storage


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds the lock, since when (UTC, ISO 8601) and for what."""

    pid: int
    host: str
    purpose: str
    since: str

    def __str__(self) -> str:
        return str(self.told)

    @property
    def told(self) -> Phrase:
        return phrase(
            "{purpose} (process {pid} on {host}, since {since})", **{**asdict(self), "purpose": listed(self.purpose)}
        )


OnWait: TypeAlias = Callable[["Owner | None"], None]
"""Called once when the lock is held by someone else; None: by a reader, or by one who has left no note yet."""


@dataclass(slots=True)
class Lock:
    """A lock that is held until `release`, or until the process ends."""

    fd: int
    exclusive: bool

    def release(self) -> None:
        try:
            if self.exclusive:
                _sign(self.fd, None)
        finally:
            disk.close(self.fd)


def exclusive(storage: Storage, purpose: str, *, wait: float, on_wait: OnWait) -> Lock:
    """Take the writer's lock; the folder is made if it is missing.

    Raises:
        TreeError: it is still held after `wait` seconds, or cannot be made.
    """
    deadline = time.monotonic() + wait
    try:
        while True:
            fd = _open(storage)
            try:
                _await(fd, storage, deadline, on_wait, exclusive=True)
                if locks.is_at(fd, storage.lock):  # Else its holder has reverted everything and removed it.
                    _sign(fd, Owner(os.getpid(), os.uname().nodename, purpose, now()))
                    return Lock(fd, exclusive=True)
            except BaseException:
                disk.close(fd)
                raise
            disk.close(fd)
    except locks.LockUnsupportedError as error:
        _forget(storage)
        raise TreeError(
            phrase("{path}: cannot be locked", path=storage.lock),
            cause="this file system offers no flock, so two runs could write at once",
            advice="Mount it with flock (Lustre: `-o flock`), or work on a copy of the tree on a local disk.",
        ) from error
    except OSError as error:
        _forget(storage)
        raise tree_error(error, phrase("{path}: cannot be written to", path=storage.root)) from error


def shared(storage: Storage, *, wait: float, on_wait: OnWait) -> Lock | None:
    """Take a reader's lock; None where there is no lock file, no right to read it, or no flock. Makes nothing.

    Raises:
        TreeError: a writer still holds it after `wait` seconds.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            fd = disk.open_lock(storage.lock, make=False)
        except OSError:
            return None
        try:
            _await(fd, storage, deadline, on_wait, exclusive=False)
            if locks.is_at(fd, storage.lock):
                return Lock(fd, exclusive=False)
        except locks.LockUnsupportedError:
            disk.close(fd)
            return None
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)


def _open(storage: Storage) -> int:
    while True:
        storage.exists()
        disk.make_folder(storage.folder)
        try:
            return disk.open_lock(storage.lock, make=True)
        except FileNotFoundError:
            continue  # The folder went between the two calls: a full revert has just ended.


def _await(fd: int, storage: Storage, deadline: float, on_wait: OnWait, *, exclusive: bool) -> None:
    wait = max(0.0, deadline - time.monotonic())
    try:
        locks.await_lock(fd, wait, exclusive=exclusive, on_wait=lambda: on_wait(_owner(fd)))
    except locks.LockHeldError as error:
        owner = _owner(fd)
        raise TreeError(
            phrase("{root}: in use by another run of uky-patch", root=storage.root),
            cause=phrase("held by {owner}", owner=owner.told)
            if owner
            else phrase("held by a run that reads it, or has only just begun"),
            advice="Wait until it has ended, or end it, and run the command again. Do not remove the lock file.",
        ) from error


def _sign(fd: int, owner: Owner | None) -> None:
    # The note is a courtesy: the lock holds without it.
    with contextlib.suppress(OSError):
        disk.overwrite(fd, json.dumps(asdict(owner)).encode() if owner else b"")


def _owner(fd: int) -> Owner | None:
    try:
        note = parse_json(disk.peek(fd))
        return Owner(int(note["pid"]), str(note["host"]), str(note["purpose"]), str(note["since"]))
    except (ValueError, KeyError, TypeError, OSError):
        return None


def _forget(storage: Storage) -> None:
    """Remove what was made in vain; the error that led here is the one to report."""
    with contextlib.suppress(OSError):
        if disk.names(storage.folder) == [storage.lock.name]:
            disk.remove(storage.lock)
        disk.remove_folder(storage.folder)
