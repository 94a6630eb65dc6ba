"""Looking at a tree without changing it: a shared lock where there is one to take, and a check where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from patcher.errors import TreeError
from patcher.tree import lock
from patcher.tree.account import Account, account
from patcher.worktree import disk

if TYPE_CHECKING:
    from patcher.tree.journal import Recovery
    from patcher.tree.ledger import Ledger
    from patcher.tree.storage import Storage
    from patcher.worktree.locks import Lock

_Stamp: TypeAlias = "tuple[tuple[int, int, int] | None, ...]"


@dataclass(slots=True)
class Reading:
    """The tree while this run looks at it."""

    storage: Storage
    account: Account
    recovered: Recovery | None = None
    """What an interrupted run had left, and how it was ended before this reading began."""
    unfinished: TreeError | None = None
    """Why what an interrupted run has left could not be ended: the files may be old and new."""
    _held: Lock | None = None
    _stamp: _Stamp = ()

    @property
    def ledger(self) -> Ledger:
        return self.account.ledger

    def disturbed(self) -> bool:
        """Whether another run may have written since the reading began, so that what was read may not fit together."""
        return self._held is None and _stamp(self.storage) != self._stamp


@contextlib.contextmanager
def reading(storage: Storage, *, wait: float, on_wait: lock.OnWait) -> Iterator[Reading]:
    """Hold off writers while the tree is looked at. Ends an interrupted run first if it can.

    Without a journal of such a run nothing is made, and nothing removed, whatever else is there.

    Raises:
        TreeError: a writer still holds the lock after `wait` seconds; what is patched cannot be known.
    """
    recovered: Recovery | None = None
    unfinished: TreeError | None = None
    stamp, held = _take(storage, wait, on_wait)
    try:
        if storage.exists() and disk.status(storage.journal) is not None:
            if held is not None:
                held.release()
                held = None
            from patcher.tree.transaction import end_interrupted

            try:
                recovered = end_interrupted(storage, wait=wait, on_wait=on_wait)
            except TreeError as error:
                unfinished = error
            stamp, held = _take(storage, wait, on_wait)
        yield Reading(storage, account(storage), recovered, unfinished, held, stamp)
    finally:
        if held is not None:
            held.release()


def _take(storage: Storage, wait: float, on_wait: lock.OnWait) -> tuple[_Stamp, Lock | None]:
    held = lock.shared(storage, wait=wait, on_wait=on_wait) if storage.exists() else None
    return ((), held) if held is not None else (_stamp(storage), None)


def _stamp(storage: Storage) -> _Stamp:
    """What any other run's writing would change: the root's entries, the lock, the journal, the ledger."""
    stamps: list[tuple[int, int, int] | None] = []
    for path in (storage.root, storage.folder, storage.lock, storage.journal, storage.ledger):
        found = disk.status(path)
        stamps.append(None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(stamps)
