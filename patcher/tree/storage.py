"""The folder `.uky-patch` in a tree's root: what is in it, how it comes and how it goes.

ledger.json   which files are patched         originals/<sha256>       what they were before
journal.json  a change under way              originals/<sha256>.json  and what that is: see `patcher.tree.notes`
lock          flock, and a note of its owner  staged/                  the change's new and old files
.gitignore    `*`
"""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.tree.ledger import DamagedLedgerError, Ledger, dump, parse
from patcher.tree.os_errors import tree_error
from patcher.tree.paths import FOLDER
from patcher.tree.source import digest
from patcher.worktree import backup, disk, files


@dataclass(frozen=True, slots=True)
class Storage:
    """The tool's folder in the tree at `root`, which may not exist yet."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.json"

    @property
    def originals(self) -> Path:
        return self.folder / "originals"

    @property
    def staged(self) -> Path:
        return self.folder / "staged"

    def exists(self) -> bool:
        """Whether the folder is there.

        Raises:
            TreeError: it, or a folder in it, is a symlink or a file: writing there could leave the tree.
        """
        if disk.status(self.folder) is None:
            return False
        for folder in (self.folder, self.originals, self.staged):
            found = disk.status(folder)
            if found is not None and not stat.S_ISDIR(found.st_mode):
                raise TreeError(
                    phrase("{path}: must be a folder, not a symlink or a file", path=folder),
                    cause="uky-patch keeps the files' pre-images there and writes nowhere else",
                    advice="Look at what it is, and remove it.",
                )
        return True

    def read_ledger(self) -> Ledger:
        """What the ledger's file says; an empty ledger when there is none. `patcher.tree.account` says what holds.

        Raises:
            DamagedLedgerError: it is damaged, or something else than a file is in its place.
            TreeError: it is of a newer format, or cannot be read.
        """
        content = self.ledger_content()
        return Ledger() if content is None else parse(content, f"{FOLDER}/ledger.json")

    def ledger_content(self) -> bytes | None:
        """The ledger's bytes, None when there is none."""
        try:
            return disk.read(self.ledger)[0]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            trouble = tree_error(error, phrase("{path}: cannot be read", path=f"{FOLDER}/ledger.json"))
            if error.errno == errno.ELOOP or isinstance(error, files.IrregularFileError):
                raise DamagedLedgerError(trouble.title, cause=trouble.cause, advice=trouble.advice) from error
            raise trouble from error

    def set_ledger_aside(self) -> None:
        """Move whatever is in the ledger's place to a name of its own, where it stays."""
        if disk.status(self.ledger) is not None:
            backup.move_aside(self.root, self.ledger)

    def pre_image(self, sha256: str) -> bytes:
        """The bytes of the original that has this digest.

        Raises:
            TreeError: it is missing or damaged.
        """
        name = f"{FOLDER}/originals/{sha256}"
        advice = phrase("Restore it from a copy of the tree, or take the file back with git.")
        try:
            content, _ = disk.read(self.originals / sha256)
        except FileNotFoundError as error:
            raise TreeError(phrase("{path}: missing", path=name), advice=advice) from error
        except OSError as error:
            raise tree_error(error, phrase("{path}: cannot be read", path=name)) from error
        if digest(content) != sha256:
            raise TreeError(
                phrase("{path}: damaged", path=name), cause=phrase("its content has another digest"), advice=advice
            )
        return content

    def has_original(self, sha256: str) -> bool:
        """Whether the original with this digest is stored, and whole."""
        try:
            self.pre_image(sha256)
        except TreeError:
            return False
        return True

    def keep_release(self, ledger: Ledger, release: str) -> str:
        """Copy `ledger`, its pre-images and their notes to a folder that is laid out like a tree's own, named after
        `release`; the same ones twice are one folder. Returns that folder's path below the root.

        Raises:
            TreeError: they cannot be written.
        """
        written = dump(ledger)
        name = f"verl-{re.sub(r'[^0-9A-Za-z.+-]', '_', release) or 'unknown'}.{digest(written)[:12]}"
        try:
            folder = Path(backup.make_folder(self.root)) / name
            inner = folder / FOLDER
            for place in (folder, inner, inner / "originals"):
                disk.make_folder(place)
            for original in {file.original for file in ledger.files.values()}:
                for found in (original, f"{original}.json"):
                    if disk.status(self.originals / found) is not None:
                        backup.write(inner / "originals" / found, disk.read(self.originals / found)[0])
            backup.write(inner / "ledger.json", written)
            for place in (inner, folder):
                disk.sync(place)
        except OSError as error:
            title = phrase("{path}: the pre-images cannot be kept, so nothing was changed", path=self.folder)
            raise tree_error(error, title) from error
        return f"{backup.FOLDER}/{name}"

    def make(self) -> None:
        """Make the folder, and the folders in it, for a change. The caller holds the lock."""
        disk.make_folder(self.folder)
        ignore = self.folder / ".gitignore"
        if disk.status(ignore) is None:
            disk.create(ignore, b"*\n")
        disk.make_folder(self.originals)
        disk.make_folder(self.staged)
        _clear(self.staged, disk.names(self.staged))

    def tidy(self) -> None:
        """Remove what an ended change has staged, and the folder if nothing of a patched file is left in it.

        The caller holds the lock, and no journal is under way. A pre-image is never removed here: a journal alone says
        which are not needed any more. The lock file goes last: whoever waits for it sees that it is gone and starts
        anew.
        """
        _clear(self.staged, disk.names(self.staged))
        disk.remove_folder(self.staged)
        if disk.status(self.ledger) is None and disk.remove_folder(self.originals):
            disk.remove(self.folder / ".gitignore")
            disk.remove(self.lock)
            disk.remove_folder(self.folder)


def _clear(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        disk.remove(folder / name)
