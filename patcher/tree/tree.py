"""A verl tree on the disk: finding it, reading it, changing it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.tree import scan
from patcher.tree.os_errors import tree_error
from patcher.tree.paths import parts, resolve
from patcher.tree.reading import Reading, reading
from patcher.tree.source import Source, digest
from patcher.tree.storage import Storage
from patcher.worktree import backup, disk

if TYPE_CHECKING:
    from patcher.tree.ledger import Ledger
    from patcher.tree.lock import OnWait, Owner
    from patcher.tree.transaction import Transaction

State: TypeAlias = Literal["as-applied", "original", "tampered", "missing"]
"""A file against the ledger: what was written, what was there before, neither, or gone."""


def _wait_silently(owner: Owner | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder that holds `verl/`. `root` is its real path."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> Tree:
        """The tree at `root`.

        Raises:
            UsageError: `root` holds no `verl/`.
        """
        place = Path(os.path.realpath(root))
        if holds_verl(place):
            return cls(place)
        advice = phrase("Name a fork's checkout, or the folder above the package verl, with --root.")
        if place.name == "verl" and holds_verl(place.parent):
            itself = "{folder} is the package itself: name the folder above it, --root {above}"
            advice = phrase(itself, folder=place, above=place.parent)
        elif inner := _inner(place):
            advice = phrase("There is one further down: --root {folder}", folder=place / inner[0])
        raise UsageError(
            phrase("{path}: no verl tree", path=root),
            cause="it has no folder verl with __init__.py or version/version in it" if place.is_dir() else "no folder",
            advice=advice,
        )

    @classmethod
    def find(cls, start: Path) -> Tree:
        """The tree that `start` lies in: the nearest folder upwards that holds `verl/`.

        Raises:
            UsageError: there is none.
        """
        place = Path(os.path.realpath(start))
        for folder in (place, *place.parents):
            if holds_verl(folder):
                return cls(folder)
        raise UsageError(
            phrase("{path}: not inside a verl tree", path=start),
            cause="neither it nor a folder above it holds verl/ with __init__.py or version/version in it",
            advice="Change to a fork's checkout, or name it with --root.",
        )

    @property
    def storage(self) -> Storage:
        return Storage(self.root)

    def nested(self) -> tuple[str, ...]:
        """Folders in the root that are verl trees of their own: a checkout within a checkout, by mistake or not."""
        return _inner(self.root)

    def read(self, path: str) -> Source | None:
        """A file by its path below the root; None when there is none. A symlink inside the tree is followed.

        Raises:
            TreeError: the path leads out of the tree, or what is there is no file or may not be read.
        """
        place = resolve(self.root, path)
        try:
            content, found = disk.read(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be read", path=path)) from error
        return Source(path, content, digest(content), stat.S_IMODE(found.st_mode))

    def ledger(self) -> Ledger:
        """The ledger as it holds, without a lock; an empty one when nothing is applied. See `patcher.tree.account`.

        Raises:
            TreeError: it is lost with all that is known of the pre-images, or written by a newer version.
        """
        from patcher.tree.account import account

        return account(self.storage).ledger

    def pre_image(self, sha256: str) -> bytes:
        """The bytes of a patched file before the first record, by their digest in the ledger; verified.

        Raises:
            TreeError: missing or damaged.
        """
        return self.storage.pre_image(sha256)

    def keep(self, path: str, content: bytes) -> str:
        """Lay by what a file holds now, before it is replaced; see `patcher.worktree.backup`. Returns where.

        Raises:
            TreeError: it cannot be written.
        """
        parts(path)
        try:
            return backup.keep_copy(self.root, path, content)
        except OSError as error:
            title = phrase("{path}: its changes cannot be kept, so nothing was changed", path=path)
            raise tree_error(error, title) from error

    def state(self, ledger: Ledger) -> dict[str, State]:
        """Each file that the ledger names against what is there now.

        Raises:
            TreeError: a path of the ledger leads out of the tree, or may not be read.
        """
        states: dict[str, State] = {}
        for path, entry in ledger.files.items():
            source = self.read(path)
            if source is None:
                states[path] = "missing"
            elif source.sha256 == entry.patched:
                states[path] = "as-applied"
            else:
                states[path] = "original" if source.sha256 == entry.original else "tampered"
        return states

    def transaction(
        self, purpose: str, *, wait: float = 0.0, on_wait: OnWait = _wait_silently
    ) -> AbstractContextManager[Transaction]:
        """Be the only writer; see `patcher.tree.transaction`. `wait` is in seconds."""
        from patcher.tree.transaction import transaction

        return transaction(self.storage, purpose, wait=wait, on_wait=on_wait)

    def reading(self, *, wait: float = 30.0, on_wait: OnWait = _wait_silently) -> AbstractContextManager[Reading]:
        """Hold off writers while looking; see `patcher.tree.reading`. `wait` is in seconds."""
        return reading(self.storage, wait=wait, on_wait=on_wait)

    def text_files(self) -> Iterator[scan.Found]:
        """The source, script and settings files that may hold marked lines."""
        return scan.files(self.root, scan.TEXT)


def holds_verl(folder: Path) -> bool:
    """Whether `folder` is a verl tree's root."""
    package = folder / "verl"
    return (package / "__init__.py").is_file() or (package / "version" / "version").is_file()


def _inner(root: Path) -> tuple[str, ...]:
    return tuple(
        name for name in disk.names(root) if not name.startswith(".") and holds_verl(root / name) and name != "verl"
    ) + (("verl",) if (root / "verl" / "verl").is_dir() and holds_verl(root / "verl") else ())
