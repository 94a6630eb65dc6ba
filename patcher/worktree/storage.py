"""The folder `.uky-patch` in a tree's root: what is in it, how it comes and goes, and what it says is patched.

ledger.json   which files are patched         originals/<sha256>       what they were before
journal.json  a change under way              originals/<sha256>.json  and what that is: see `patcher.worktree.ledger`
lock          flock, and a note of its owner  staged/                  the change's new and old files
.gitignore    `*`
"""

from __future__ import annotations

import errno
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Iterable, Mapping

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import backup, disk, files
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.layout import FOLDER, KEPT, LEDGER, ORIGINALS
from patcher.worktree.ledger import (
    NOTE,
    AppliedRecord,
    DamagedLedgerError,
    Ledger,
    Note,
    PatchedFile,
    dump,
    is_digest,
    parse,
    parse_note,
)
from patcher.worktree.os_errors import refused
from patcher.worktree.path_guard import resolve


@dataclass(frozen=True)
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
        """What the ledger's file says; an empty ledger when there is none. `account` says what holds.

        Raises:
            DamagedLedgerError: it is damaged, or something else than a file is in its place.
            Refusal: it is of a newer format, or cannot be read.
        """
        content = self.ledger_content()
        return Ledger() if content is None else parse(content, LEDGER)

    def ledger_content(self) -> bytes | None:
        """The ledger's bytes, None when there is none."""
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
        """Move whatever is in the ledger's place to a name of its own, where it stays."""
        if disk.status(self.ledger) is not None:
            backup.move_aside(self.root, self.ledger)

    def pre_image(self, sha256: str) -> bytes:
        """The bytes of the original that has this digest.

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
        """Whether the original with this digest is stored, and whole."""
        try:
            self.pre_image(sha256)
        except Refusal:
            return False
        return True

    def notes(self) -> list[Note]:
        """The notes that can be understood; whatever else lies in the folder is passed over."""
        named = [name[: -len(NOTE)] for name in disk.names(self.originals) if name.endswith(NOTE)]
        found = (parse_note(sha256, self.note_content(sha256) or b"") for sha256 in named if is_digest(sha256))
        return [note for note in found if note is not None]

    def note_content(self, sha256: str) -> bytes | None:
        """The bytes of a note; None where there is none that can be read."""
        try:
            return disk.read(self.originals / (sha256 + NOTE))[0]
        except OSError:
            return None

    def keep_release(self, ledger: Ledger, release: str) -> str:
        """Copy `ledger`, its pre-images and their notes to a folder that is laid out like a tree's own, named after
        `release`; the same ones twice are one folder. Returns that folder's path below the root.

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


@dataclass(frozen=True)
class Account:
    """What is patched here, and how it is known."""

    ledger: Ledger = field(default_factory=Ledger)
    damage: Message | None = None
    """What is wrong with the ledger's file; None where it can be used, or where there is nothing that it could name."""
    restored: tuple[str, ...] = ()
    """Files that the pre-images' notes account for, and the ledger's file does not."""
    strays: tuple[str, ...] = ()
    """Files with a pre-image that the ledger does not name, and with a content that nothing accounts for."""
    unknown: tuple[str, ...] = ()
    """Pre-images of which neither the ledger nor a note says what they are."""
    missing: tuple[str, ...] = ()
    """Files of the ledger whose pre-image is not there."""

    @property
    def behind(self) -> bool:
        """Whether the ledger's file is to be written anew."""
        return self.damage is not None or bool(self.restored)


def account(storage: Storage) -> Account:
    """Read the ledger, and complete it. Changes nothing.

    Raises:
        Refusal: the ledger is of a newer format, or may not be read; or it is lost, and pre-images are there of
            which no note says what they are.
    """
    found_names = disk.names(storage.originals)
    names = {name for name in found_names if is_digest(name)}
    names |= {ABSENT} if ABSENT + NOTE in found_names else set()
    try:
        ledger, damage = storage.read_ledger(), None
        if not ledger and names:
            damage = phrase("missing") if disk.status(storage.ledger) is None else phrase("names no file")
    except DamagedLedgerError as error:
        ledger, damage = Ledger(), phrase("damaged")
        if not names:
            raise
        refusal: Refusal | None = error
    else:
        refusal = None
    current = {path: _digest(storage, path) for path in ledger.files}
    fits = all(current[path] in (file.original, file.patched) for path, file in ledger.files.items())
    if damage is None and fits and names <= {file.original for file in ledger.files.values()}:
        return Account(ledger, missing=_missing(ledger, names))
    found = storage.notes()
    known = _candidates(found)
    restored, strays = {}, []
    for path, candidates in sorted(known.items()):
        there, entry = _digest(storage, path), ledger.files.get(path)
        if entry is not None and there in (entry.original, entry.patched):
            continue
        match = next((one for one in candidates if one.files[path].patched == there), None)
        if match is not None:
            restored[path] = match
        elif entry is None and all(one.files[path].original != there for one in candidates):
            if damage is None:
                strays.append(path)
            else:
                restored[path] = candidates[0]
    unknown = tuple(sorted(names - {note.sha256 for note in found} - {file.original for file in ledger.files.values()}))
    if damage is not None and not found:
        raise _lost(damage, unknown) from refusal
    whole = _with(ledger, restored)
    if not restored and not unknown and refusal is None:
        damage = None  # Nothing is patched: every file that a note names is as it was.
    missing = _missing(whole, names)
    return Account(whole, damage, tuple(restored), tuple(strays), unknown if damage is not None else (), missing)


def _candidates(found: list[Note]) -> dict[str, list[Ledger]]:
    """What the notes say of each path; of several notes of one, those come first whose records are the newest."""
    known: dict[str, list[Ledger]] = {}
    for note in found:
        for state in note.states:
            for path in state.files:
                known.setdefault(path, []).append(state)
    for states in known.values():
        states.sort(key=lambda state: max((record.at for record in state.records.values()), default=""), reverse=True)
    return known


def _with(ledger: Ledger, restored: Mapping[str, Ledger]) -> Ledger:
    if not restored:
        return ledger
    patched: dict[str, PatchedFile] = dict(ledger.files)
    records: dict[str, AppliedRecord] = dict(ledger.records)
    for path, part in restored.items():
        patched[path] = part.files[path]
        for name in part.files[path].records:
            mine, theirs = records.get(name), part.records.get(name)
            if theirs is not None and (mine is None or mine.at <= theirs.at):
                records[name] = theirs
    return replace(ledger, files=patched, records=records, basis={})


def _digest(storage: Storage, path: str) -> str | None:
    try:
        return digest_of(disk.read(resolve(storage.root, path))[0])
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, Refusal):
        return None


def _missing(ledger: Ledger, names: set[str]) -> tuple[str, ...]:
    return tuple(path for path, file in ledger.files.items() if file.original not in {ABSENT, *names})


def _lost(damage: Message, unknown: tuple[str, ...]) -> Refusal:
    return Refusal(
        "ledger",
        phrase("{path}: {damage}", path=LEDGER, damage=damage),
        phrase(
            "{count} {count:pre-image|pre-images} {count:is|are} in {folder}, "
            "and nothing else says of which files; nothing was changed",
            count=len(unknown),
            folder=ORIGINALS,
        ),
        phrase(
            "Restore the ledger from a copy. Or take the patched files back with git or pip, "
            "and then move {folder} out of the tree.",
            folder=FOLDER,
        ),
    )


def _clear(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        disk.remove(folder / name)
