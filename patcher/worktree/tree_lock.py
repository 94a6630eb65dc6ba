"""The lock of a tree, `.uky-patch/lock`: one writer at a time, or several readers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Callable, Optional

from patcher.messages import Message, Refusal, english, listed, phrase
from patcher.worktree import disk, locks
from patcher.worktree.locks import Lock, Note
from patcher.worktree.os_errors import refused
from patcher.worktree.storage import Storage


@dataclass(frozen=True)
class Owner:
    """Who holds the lock, from the note in its file."""

    pid: int
    host: str
    purpose: str
    """The command, such as `apply`."""
    since: str
    """The UTC time in ISO 8601."""

    def __str__(self) -> str:
        return english(self.message)

    @property
    def message(self) -> Message:
        """Who it is, as a part of a sentence."""
        return phrase(
            "{purpose} (process {pid} on {host}, since {since})",
            purpose=listed(self.purpose),
            pid=self.pid,
            host=self.host,
            since=self.since,
        )


OnWait = Callable[[Optional[Owner]], None]
"""Called once if somebody else holds the lock. None: a reader, or a holder that has not written its note yet."""


def exclusive(storage: Storage, purpose: str, *, wait: float, on_wait: OnWait) -> Lock:
    """Take the writer's lock; the folder `.uky-patch` is made if it is missing.

    Raises:
        Refusal: somebody still holds it after `wait` seconds; or it cannot be made, or not be locked.
    """
    try:
        while True:
            storage.exists()
            disk.make_folder(storage.folder)
            try:
                return locks.take(
                    storage.lock, locks.signature(purpose), wait=wait, on_wait=lambda note: on_wait(_owner(note))
                )
            except FileNotFoundError:
                continue  # The folder was removed between the two calls: a revert of all records has just ended.
    except locks.LockHeldError as error:
        raise _held(storage, error) from error
    except locks.LockUnsupportedError as error:
        _remove_empty(storage)
        raise Refusal(
            "lock",
            phrase("{path}: cannot be locked", path=storage.lock),
            phrase("this file system offers no flock, so two runs could write at once"),
            phrase("Mount it with flock (Lustre: `-o flock`), or work on a copy of the tree on a local disk."),
        ) from error
    except OSError as error:
        _remove_empty(storage)
        raise refused(error, phrase("{path}: cannot be written to", path=storage.root)) from error


def shared(storage: Storage, *, wait: float, on_wait: OnWait) -> Lock | None:
    """Take a reader's lock; None if there is no lock file, it cannot be read, or there is no flock. Makes no file.

    Raises:
        Refusal: a writer still holds it after `wait` seconds.
    """
    try:
        return locks.take(storage.lock, None, wait=wait, on_wait=lambda note: on_wait(_owner(note)))
    except locks.LockHeldError as error:
        raise _held(storage, error) from error
    except OSError:
        return None


def _held(storage: Storage, error: locks.LockHeldError) -> Refusal:
    owner = _owner(error.owner)
    return Refusal(
        "tree-in-use",
        phrase("{root}: in use by another run of uky-patch", root=storage.root),
        phrase("held by {owner}", owner=owner.message)
        if owner
        else phrase("held by a run that reads it, or has only just begun"),
        phrase("Wait until it has ended, or end it, and run the command again. Do not remove the lock file."),
    )


def _owner(note: Note) -> Owner | None:
    try:
        return Owner(int(note["pid"]), str(note["host"]), str(note["purpose"]), str(note["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def _remove_empty(storage: Storage) -> None:
    """Remove a folder `.uky-patch` that has nothing but the lock file: it was made for a run that cannot begin."""
    with contextlib.suppress(OSError):
        if disk.names(storage.folder) == [storage.lock.name]:
            disk.remove(storage.lock)
        disk.remove_folder(storage.folder)
