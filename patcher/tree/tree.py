"""`Tree`: a verl tree on this machine. Its methods raise TreeError where `patcher.worktree` raises Refusal."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from patcher.errors import UsageError
from patcher.i18n import Phrase, phrase
from patcher.i18n.codec import decode
from patcher.messages import Refusal
from patcher.tree.errors import tree_error, tree_errors
from patcher.tree.source import Source, sha256_of
from patcher.worktree import backup, disk, reading, transaction, verl_tree
from patcher.worktree.account import account
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.ledger import Ledger, PatchedFile
from patcher.worktree.path_guard import parts, resolve
from patcher.worktree.reading import Reading
from patcher.worktree.storage import Storage
from patcher.worktree.transaction import Transaction
from patcher.worktree.tree_lock import OnWait, Owner

State: TypeAlias = Literal["as-applied", "original", "tampered", "missing"]
"""A file compared with the ledger: as the records made it, as it was before them, something else, or not there."""


def _wait_silently(owner: Owner | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder with the package `verl` in it."""

    root: Path
    """Its real path."""

    @classmethod
    def open(cls, root: Path) -> Tree:
        """The tree at `root`.

        Raises:
            UsageError: there is none.
        """
        try:
            return cls(verl_tree.root_of(root))
        except Refusal as refusal:
            cause, advice = decode(refusal.cause), decode(refusal.advice)
            raise UsageError(decode(refusal.title), cause=cause, advice=advice) from refusal

    @classmethod
    def around(cls, start: Path) -> Tree | None:
        """The tree that `start` lies in: the nearest folder upwards that is the root of one; None where none is."""
        place = Path(os.path.realpath(start))
        return next((cls(folder) for folder in (place, *place.parents) if verl_tree.holds_verl(folder)), None)

    @classmethod
    def find(cls, start: Path) -> Tree:
        """The same. Raises UsageError where there is none, which says where one is to be had."""
        if (found := cls.around(start)) is not None:
            return found
        place = Path(os.path.realpath(start))
        raise UsageError(
            phrase("{path}: not inside a verl tree", path=start),
            cause="neither it nor a folder above it holds verl/ with __init__.py or version/version in it",
            advice=cls.advice_in(place) or "Change to a fork's checkout, or name it with --root.",
        )

    @staticmethod
    def advice_in(folder: Path) -> Phrase | None:
        """How to get at a tree in a folder that is none; None where nothing in it shows that."""
        near = verl_tree.wrong_package(folder) or verl_tree.where_else(folder)
        return decode(near) if near is not None else None

    @property
    def package(self) -> str:
        """The import name of the package: `verl`, unless the fork's uky-patch.toml names another."""
        return verl_tree.package_of(self.root)

    @property
    def storage(self) -> Storage:
        """The tool's folder in it, `.uky-patch`."""
        return Storage(self.root)

    def nested(self) -> tuple[str, ...]:
        """The names of folders in the root that are verl trees of their own: a checkout within the checkout."""
        return verl_tree.inner(self.root)

    def resolve(self, path: str) -> Path:
        """The real path of a path below the root; symlinks inside the tree are followed.

        Raises:
            TreeError: the path is malformed, leads out of the tree, or into `.git` or `.uky-patch`.
        """
        with tree_errors():
            return resolve(self.root, path)

    def read(self, path: str) -> Source | None:
        """The file at a path below the root; None if there is none. Symlinks inside the tree are followed.

        Raises:
            TreeError: the path leads out of the tree, or it is no regular file, or cannot be read.
        """
        place = self.resolve(path)
        try:
            content, found = disk.read(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be read", path=path)) from error
        return Source(path, content, digest_of(content), stat.S_IMODE(found.st_mode))

    def ledger(self) -> Ledger:
        """The ledger, read without a lock and completed from the notes; an empty one if nothing is applied.

        Raises:
            TreeError: it is lost and no note is left; or it was written by a newer version.
        """
        with tree_errors():
            return account(self.storage).ledger

    def pre_image(self, sha256: str) -> bytes:
        """The bytes that a patched file had before the first record, by their SHA-256; verified.

        Raises:
            TreeError: they are missing or damaged.
        """
        with tree_errors():
            return self.storage.pre_image(sha256)

    def original(self, entry: PatchedFile) -> bytes | None:
        """As `pre_image`, for a file of the ledger; None if a record has created it.

        Raises:
            TreeError: they are missing or damaged.
        """
        return None if entry.original == ABSENT else self.pre_image(entry.original)

    def keep(self, path: str, content: bytes) -> str:
        """Keep a copy of `content`, which the file at `path` has now, before it is replaced.

        Returns the copy's path below the root; see `patcher.worktree.backup`.

        Raises:
            TreeError: it cannot be written.
        """
        with tree_errors():
            parts(path)
        try:
            return backup.keep_copy(self.root, path, content)
        except OSError as error:
            title = phrase("{path}: its changes cannot be kept, so nothing was changed", path=path)
            raise tree_error(error, title) from error

    def keep_release(self, ledger: Ledger, release: str) -> str:
        """Keep copies of `ledger` and its pre-images, before files of another verl replace them.

        Returns the path of their folder below the root; see `Storage.keep_release`.

        Raises:
            TreeError: they cannot be written.
        """
        with tree_errors():
            return self.storage.keep_release(ledger, release)

    def state(self, ledger: Ledger) -> dict[str, State]:
        """The state of each file that the ledger names, by path.

        Raises:
            TreeError: a path of the ledger leads out of the tree, or may not be read.
        """
        states: dict[str, State] = {}
        for path, entry in ledger.files.items():
            source = self.read(path)
            there = sha256_of(source)
            if there == entry.patched:
                states[path] = "as-applied"
            elif there == entry.original:
                states[path] = "original"
            else:
                states[path] = "missing" if source is None else "tampered"
        return states

    @contextlib.contextmanager
    def transaction(
        self, purpose: str, *, wait: float = 0.0, on_wait: OnWait = _wait_silently
    ) -> Iterator[Transaction]:
        """Be the only writer; see `patcher.worktree.transaction`. `wait`: seconds to wait for the lock.

        Raises:
            TreeError: as `patcher.worktree.transaction.transaction` and `Transaction.commit` raise Refusal.
        """
        with tree_errors(), transaction.transaction(self.storage, purpose, wait=wait, on_wait=on_wait) as under_way:
            yield under_way

    @contextlib.contextmanager
    def reading(self, *, wait: float = 30.0, on_wait: OnWait = _wait_silently) -> Iterator[Reading]:
        """Hold off writers while reading; see `patcher.worktree.reading`. `wait`: seconds to wait for the lock.

        Raises:
            TreeError: as `patcher.worktree.reading.reading` raises Refusal.
        """
        with tree_errors(), reading.reading(self.storage, wait=wait, on_wait=on_wait) as found:
            yield found

    def text_files(self) -> Iterator[verl_tree.Found]:
        """The source, script and settings files, in which records may have marked lines."""
        return verl_tree.files(self.root, verl_tree.TEXT)
