"""A tree while one run looks at it and holds off writers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

from patcher.messages import Refusal
from patcher.worktree import disk, journal, tree_lock
from patcher.worktree.account import Account, account
from patcher.worktree.journal import Recovery
from patcher.worktree.ledger import Ledger
from patcher.worktree.locks import Lock
from patcher.worktree.storage import Storage


def end_interrupted(storage: Storage, *, wait: float, on_wait: tree_lock.OnWait) -> Recovery | None:
    """Finish or take back what an interrupted run has left. For commands that otherwise only read.

    Raises:
        Refusal: another run holds the lock for longer than `wait` seconds; the interrupted run can neither be finished
            nor taken back; the tree cannot be written to.
    """
    held = tree_lock.exclusive(storage, "recovery", wait=wait, on_wait=on_wait)
    try:
        recovered = journal.recover(storage)
        with contextlib.suppress(OSError):  # The next run that writes tidies up.
            storage.tidy()
        return recovered
    finally:
        held.release()


_Stamp = Tuple[Optional[Tuple[int, int, int]], ...]


@dataclass
class Reading:
    """The tree while this run looks at it; see `reading`."""

    storage: Storage
    account: Account
    recovered: Recovery | None = None
    """The interrupted run that was finished or taken back before this reading began."""
    unfinished: Refusal | None = None
    """Why an interrupted run could not be ended: some files may be old and others new."""
    _held: Lock | None = None
    _stamp: _Stamp = ()

    @property
    def ledger(self) -> Ledger:
        return self.account.ledger

    def disturbed(self) -> bool:
        """Whether another run may have written meanwhile, so that old and new files may have been read.

        Always False under the lock. Without one (no lock file, or no right to open it), the times tell.
        """
        return self._held is None and _stamp(self.storage) != self._stamp


@contextlib.contextmanager
def reading(storage: Storage, *, wait: float, on_wait: tree_lock.OnWait) -> Iterator[Reading]:
    """Hold off writers while the tree is looked at. An interrupted run is finished or taken back first, if possible.

    Nothing else is written: without the journal of such a run no file is created or removed.

    Raises:
        Refusal: a writer still holds the lock after `wait` seconds; or the ledger is lost or of a newer format.
    """
    recovered: Recovery | None = None
    unfinished: Refusal | None = None
    stamp, held = _take(storage, wait, on_wait)
    try:
        if storage.exists() and disk.status(storage.journal) is not None:
            if held is not None:
                held.release()
                held = None
            try:
                recovered = end_interrupted(storage, wait=wait, on_wait=on_wait)
            except Refusal as error:
                unfinished = error
            stamp, held = _take(storage, wait, on_wait)
        yield Reading(storage, account(storage), recovered, unfinished, held, stamp)
    finally:
        if held is not None:
            held.release()


def _take(storage: Storage, wait: float, on_wait: tree_lock.OnWait) -> tuple[_Stamp, Lock | None]:
    """The reader's lock; without one, a stamp of the tree."""
    held = tree_lock.shared(storage, wait=wait, on_wait=on_wait) if storage.exists() else None
    return ((), held) if held is not None else (_stamp(storage), None)


def _stamp(storage: Storage) -> _Stamp:
    """Inode, time and size of what every run that writes changes: the root's entries, the lock, journal and ledger."""
    stamps: list[tuple[int, int, int] | None] = []
    for path in (storage.root, storage.folder, storage.lock, storage.journal, storage.ledger):
        found = disk.status(path)
        stamps.append(None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(stamps)
