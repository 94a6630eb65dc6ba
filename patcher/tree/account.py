"""The ledger as it holds: its file, and where that is lost or behind, what the pre-images say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.i18n import Phrase, phrase
from patcher.tree import notes
from patcher.tree.ledger import AppliedRecord, DamagedLedgerError, Ledger, PatchedFile, is_digest
from patcher.tree.paths import FOLDER, resolve
from patcher.tree.source import digest
from patcher.worktree import disk

if TYPE_CHECKING:
    from patcher.tree.notes import Note
    from patcher.tree.storage import Storage


@dataclass(frozen=True, slots=True)
class Account:
    """What is patched here, and how it is known."""

    ledger: Ledger = field(default_factory=Ledger)
    damage: Phrase | None = None
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
        TreeError: the ledger is of a newer format, or may not be read; or it is lost, and pre-images are there of
            which no note says what they are.
    """
    names = {name for name in disk.names(storage.originals) if is_digest(name)}
    try:
        ledger, damage = storage.read_ledger(), None
        if not ledger and names:
            damage = phrase("missing") if disk.status(storage.ledger) is None else phrase("names no file")
    except DamagedLedgerError as error:
        ledger, damage = Ledger(), phrase("damaged")
        if not names:
            raise
        trouble: TreeError | None = error
    else:
        trouble = None
    current = {path: _digest(storage, path) for path in ledger.files}
    fits = all(current[path] in (file.original, file.patched) for path, file in ledger.files.items())
    if damage is None and fits and names <= {file.original for file in ledger.files.values()}:
        return Account(ledger, missing=_missing(ledger, names))
    found = notes.every(storage)
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
        raise _lost(damage, unknown) from trouble
    whole = _with(ledger, restored)
    if not restored and not unknown and trouble is None:
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
    files: dict[str, PatchedFile] = dict(ledger.files)
    records: dict[str, AppliedRecord] = dict(ledger.records)
    for path, part in restored.items():
        files[path] = part.files[path]
        for name in part.files[path].records:
            mine, theirs = records.get(name), part.records.get(name)
            if theirs is not None and (mine is None or mine.at <= theirs.at):
                records[name] = theirs
    return replace(ledger, files=files, records=records, basis={})


def _digest(storage: Storage, path: str) -> str | None:
    try:
        return digest(disk.read(resolve(storage.root, path))[0])
    except (OSError, TreeError):
        return None


def _missing(ledger: Ledger, names: set[str]) -> tuple[str, ...]:
    return tuple(path for path, file in ledger.files.items() if file.original not in names)


def _lost(damage: Phrase, unknown: tuple[str, ...]) -> TreeError:
    return TreeError(
        phrase("{path}: {damage}", path=f"{FOLDER}/ledger.json", damage=damage),
        cause=phrase(
            "{count} {count:pre-image|pre-images} {count:is|are} in {folder}, "
            "and nothing else says of which files; nothing was changed",
            count=len(unknown),
            folder=f"{FOLDER}/originals",
        ),
        advice=phrase(
            "Restore the ledger from a copy. Or take the patched files back with git or pip, "
            "and then move {folder} out of the tree.",
            folder=FOLDER,
        ),
    )
