"""The folder `.uky-patch` in a tree's root: what is in it, and how it is made and removed.

ledger.json   which files are patched         originals/<sha256>       pre-images: what these files were before
journal.json  a change under way              originals/<sha256>.json  the note on each: see `patcher.worktree.ledger`
lock          flock, and a note of its owner  staged/                  the new and old files of the change under way
.gitignore    `*`
"""

from __future__ import annotations

import errno
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable

from patcher.messages import Refusal, phrase
from patcher.worktree import backup, disk, files
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.layout import FOLDER, KEPT, LEDGER, ORIGINALS
from patcher.worktree.ledger import (
    NOTE,
    DamagedLedgerError,
    Ledger,
    Note,
    dump,
    is_digest,
    parse,
    parse_note,
)
from patcher.worktree.os_errors import refused


@dataclass(frozen=True)
class Storage:
    """The tool's folder in the tree at `root`, a real path. It may not exist yet."""

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
            Refusal: it, or a folder in it, is a symlink or a file: writing there could leave the tree.
        """
        if disk.status(self.folder) is None:
            return False
        for folder in (self.folder, self.originals, self.staged):
            found = disk.status(folder)
            if found is not None and not stat.S_ISDIR(found.st_mode):
                raise Refusal(
                    "storage",
                    phrase("{path}: must be a folder, not a symlink or a file", path=folder),
                    phrase("uky-patch keeps the files' pre-images there and writes nowhere else"),
                    phrase("Look at what it is, and remove it."),
                )
        return True

    def read_ledger(self) -> Ledger:
        """What `ledger.json` says; an empty ledger if there is none. It may be older than the tree: see `account`.

        Raises:
            DamagedLedgerError: it is damaged, or it is no regular file.
            Refusal: it is of a newer format, or cannot be read.
        """
        content = self.ledger_content()
        return Ledger() if content is None else parse(content, LEDGER)

    def ledger_content(self) -> bytes | None:
        """The bytes of `ledger.json`; None if there is none. Raises as `read_ledger`."""
        try:
            return disk.read(self.ledger)[0]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            refusal = refused(error, phrase("{path}: cannot be read", path=LEDGER))
            if error.errno == errno.ELOOP or isinstance(error, files.IrregularFileError):
                raise DamagedLedgerError("ledger", refusal.title, refusal.cause, refusal.advice) from error
            raise refusal from error

    def set_ledger_aside(self) -> None:
        """Move whatever is at `ledger.json` to a new name in the folder of kept copies."""
        if disk.status(self.ledger) is not None:
            backup.move_aside(self.root, self.ledger)

    def pre_image(self, sha256: str) -> bytes:
        """The bytes of the pre-image with this digest, verified.

        Raises:
            Refusal: it is missing or damaged.
        """
        name = f"{ORIGINALS}/{sha256}"
        advice = phrase("Restore it from a copy of the tree, or take the file back with git.")
        try:
            content, _ = disk.read(self.originals / sha256)
        except FileNotFoundError as error:
            raise Refusal("pre-image", phrase("{path}: missing", path=name), advice=advice) from error
        except OSError as error:
            raise refused(error, phrase("{path}: cannot be read", path=name)) from error
        if digest_of(content) != sha256:
            cause = phrase("its content has another digest")
            raise Refusal("pre-image", phrase("{path}: damaged", path=name), cause, advice)
        return content

    def has_original(self, sha256: str) -> bool:
        """Whether the pre-image with this digest is there, and whole."""
        try:
            self.pre_image(sha256)
        except Refusal:
            return False
        return True

    def notes(self) -> list[Note]:
        """The notes of pre-images. What cannot be read or parsed is left out."""
        named = [name[: -len(NOTE)] for name in disk.names(self.originals) if name.endswith(NOTE)]
        found = (parse_note(sha256, self.note_content(sha256) or b"") for sha256 in named if is_digest(sha256))
        return [note for note in found if note is not None]

    def note_content(self, sha256: str) -> bytes | None:
        """The bytes of the note on this pre-image; None if it cannot be read."""
        try:
            return disk.read(self.originals / (sha256 + NOTE))[0]
        except OSError:
            return None

    def keep_release(self, ledger: Ledger, release: str) -> str:
        """Copy `ledger`, its pre-images and their notes to the kept copies, into a folder named after `release`.

        That folder has a `.uky-patch` as a tree has it. To keep the same ledger again changes nothing. Returns the
        folder's path below the root.

        Raises:
            Refusal: they cannot be written.
        """
        written = dump(ledger)
        name = f"verl-{re.sub(r'[^0-9A-Za-z.+-]', '_', release) or 'unknown'}.{digest_of(written)[:12]}"
        try:
            folder = Path(backup.make_folder(self.root)) / name
            inner = folder / FOLDER
            for place in (folder, inner, inner / "originals"):
                disk.make_folder(place)
            for original in {file.original for file in ledger.files.values()}:
                for found in (original, original + NOTE):
                    if disk.status(self.originals / found) is not None:
                        backup.write(inner / "originals" / found, disk.read(self.originals / found)[0])
            backup.write(inner / "ledger.json", written)
            for place in (inner, folder):
                disk.sync(place)
        except OSError as error:
            title = phrase("{path}: the pre-images cannot be kept, so nothing was changed", path=self.folder)
            raise refused(error, title) from error
        return f"{KEPT}/{name}"

    def make(self) -> None:
        """Make the folder and those in it, and empty `staged`. The caller holds the lock."""
        disk.make_folder(self.folder)
        disk.hide_from_git(self.folder)
        disk.make_folder(self.originals)
        disk.make_folder(self.staged)
        _clear(self.staged, disk.names(self.staged))

    def tidy(self) -> None:
        """Remove what a finished change has staged, and the whole folder if no ledger and no pre-image is in it.

        The caller holds the lock. Nothing is removed while there is a journal: its change needs what is staged.
        Pre-images are never removed here, as only a journal says which are no longer needed. The lock file goes last:
        a run that waits for it sees that it is gone, and starts again.
        """
        if disk.status(self.journal) is not None:
            return
        _clear(self.staged, disk.names(self.staged))
        disk.remove_folder(self.staged)
        if disk.status(self.ledger) is None and disk.remove_folder(self.originals):
            if set(disk.names(self.folder)) <= {".gitignore", self.lock.name}:  # On a host, jobs leave more there.
                disk.remove(self.folder / ".gitignore")
            disk.remove(self.lock)
            disk.remove_folder(self.folder)


def digest_at(place: Path) -> str | None:
    """The SHA-256 of the file at `place`; ABSENT if there is nothing, None if it is no regular file.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return digest_of(disk.read(place)[0])
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except files.IrregularFileError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def _clear(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        disk.remove(folder / name)
