"""What is patched in a tree: the ledger, completed from the pre-images' notes if its file is lost, damaged or old.

The ledger is the file `.uky-patch/ledger.json`. It can be older than the files: somebody restores it from a copy, or
deletes it, or a synchronised folder brings another one. Each pre-image has a note that says of which file it is and
what the file was made into (`patcher.worktree.ledger`). A note counts for a file whose content is what the note says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Mapping

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.hashing import ABSENT
from patcher.worktree.layout import FOLDER, LEDGER, ORIGINALS
from patcher.worktree.ledger import NOTE, AppliedRecord, DamagedLedgerError, Ledger, Note, PatchedFile, is_digest
from patcher.worktree.path_guard import resolve
from patcher.worktree.storage import Storage, digest_at


@dataclass(frozen=True)
class Account:
    """What is patched in a tree, and how that is known. The file is `.uky-patch/ledger.json`."""

    ledger: Ledger = field(default_factory=Ledger)
    """The file's entries, completed from the notes."""
    damage: Message | None = None
    """What is wrong with the file; None if it can be used, or if no file is patched."""
    restored: tuple[str, ...] = ()
    """Paths whose entry comes from a note, because the file lacks it or has another one."""
    strays: tuple[str, ...] = ()
    """Paths that a note names and the file does not, and whose content is neither that before nor that after."""
    unknown: tuple[str, ...] = ()
    """Digests of pre-images that neither the file nor a note names."""
    missing: tuple[str, ...] = ()
    """Paths in the ledger whose pre-image is missing."""

    @property
    def behind(self) -> bool:
        """Whether the file must be written again."""
        return self.damage is not None or bool(self.restored)


def account(storage: Storage) -> Account:
    """Read the ledger's file, and complete it from the notes. Changes nothing.

    Raises:
        Refusal: the file is of a newer format, or may not be read; or it is lost or damaged, and no note tells what the
            pre-images are.
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
        damage = None  # No file is patched: each that a note names is as it was before the records.
    missing = _missing(whole, names)
    return Account(whole, damage, tuple(restored), tuple(strays), unknown if damage is not None else (), missing)


def _candidates(found: list[Note]) -> dict[str, list[Ledger]]:
    """What the notes say about each path. Where several do, the one with the newest record comes first."""
    known: dict[str, list[Ledger]] = {}
    for note in found:
        for state in note.states:
            for path in state.files:
                known.setdefault(path, []).append(state)
    for states in known.values():
        states.sort(key=lambda state: max((record.at for record in state.records.values()), default=""), reverse=True)
    return known


def _with(ledger: Ledger, restored: Mapping[str, Ledger]) -> Ledger:
    """The ledger with the entries of these paths from these notes; of a record in both, the later one counts."""
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
    """As `digest_at`; None too for a file that cannot be read, or a path that leads out of the tree."""
    try:
        return digest_at(resolve(storage.root, path))
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
