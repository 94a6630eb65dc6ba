"""A change under way, written down before the first file is replaced, so that whoever comes next can end it.

Once the journal is there, every new file lies whole in `staged/<n>.new` and every old one in `staged/<n>.old`; a file
is replaced by renaming. So each step can be repeated, and each can be taken back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from patcher import __version__
from patcher.errors import TreeError
from patcher.language import phrase
from patcher.language.said import said
from patcher.tree import disk
from patcher.tree.ledger import is_digest
from patcher.tree.paths import FOLDER, resolve
from patcher.tree.source import digest
from patcher.tree.trouble import tree_error
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.tree.storage import Storage

FORMAT = 1
Direction: TypeAlias = Literal["finished", "rolled-back"]
Side: TypeAlias = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class Step:
    """One file to replace: its digest before and after."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Journal:
    """All that a change does. The ledger comes last; None: there is none before, or none after."""

    purpose: str
    steps: tuple[Step, ...]
    ledger_old: str | None
    ledger_new: str | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """A change that an earlier run did not end, and which way it was ended now."""

    purpose: str
    direction: Direction
    files: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Files that somebody has changed since the interruption: left as they are."""


class ChangedMeanwhileError(Exception):
    """A file is no longer what it was when the change was planned."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def write(storage: Storage, journal: Journal) -> None:
    """Write the journal in one step; when this returns it is on the disk."""
    data = {"format": FORMAT, "tool": __version__, **asdict(journal)}
    draft = storage.staged / "journal"
    disk.create(draft, json.dumps(data, indent=1).encode())
    disk.sync(draft)
    disk.sync(storage.staged)
    disk.replace(draft, storage.journal)
    disk.sync(storage.folder)


def read(storage: Storage) -> Journal | None:
    """The journal of a change that was interrupted, if there is one.

    Raises:
        TreeError: it is damaged, of a newer format, or cannot be read.
    """
    try:
        content, _ = disk.read(storage.journal)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be read", path=f"{FOLDER}/journal.json")) from error
    try:
        data = parse_json(content)
        if data["format"] != FORMAT:
            raise TreeError(
                phrase(
                    "{path}: written by another uky-patch ({version})",
                    path=f"{FOLDER}/journal.json",
                    version=data.get("tool", phrase("of unknown version")),
                ),
                cause="that run was interrupted, and only its own version knows how to end it",
                advice="Run any command of that version once, such as `uky-patch status`.",
            )
        steps = tuple(Step(str(step["path"]), step["old"], step["new"]) for step in data["steps"])
        journal = Journal(str(data["purpose"]), steps, data["ledger_old"], data["ledger_new"])
        digests = [sha for step in steps for sha in (step.old, step.new)]
        digests += [sha for sha in (journal.ledger_old, journal.ledger_new) if sha is not None]
        if not all(map(is_digest, digests)):
            raise ValueError(phrase("a digest is no SHA-256"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TreeError(
            phrase("{path}: damaged", path=f"{FOLDER}/journal.json"),
            cause=said(error),
            advice=phrase(
                "The files before and after are in {folder}/staged. Set the tree right by hand or with git, "
                "then remove {folder}/journal.json and {folder}/staged.",
                folder=FOLDER,
            ),
        ) from error
    return journal


def carry_out(storage: Storage, journal: Journal, side: Side, *, strict: bool) -> tuple[str, ...]:
    """Bring every file and the ledger to one side of the change, and remove the journal.

    Returns the files that are on neither side and were therefore left.

    Raises:
        ChangedMeanwhileError: a file is on neither side, and `strict` is set.
        OSError: a step could not be taken; it can be tried again.
    """
    kept, folders = [], {storage.folder}
    for number, step in enumerate(journal.steps):
        place = resolve(storage.root, step.path)
        wanted, other = (step.new, step.old) if side == "new" else (step.old, step.new)
        current = _digest_at(place)
        if current == other:
            disk.replace(storage.staged / f"{number}.{side}", place)
        elif current != wanted:
            if strict:
                raise ChangedMeanwhileError(step.path)
            kept.append(step.path)
            continue
        _drop_bytecode(place)
        folders.add(place.parent)
    _carry_out_ledger(storage, journal.ledger_new if side == "new" else journal.ledger_old, side)
    for folder in folders:
        disk.sync(folder)
    disk.remove(storage.journal)
    return tuple(kept)


def recover(storage: Storage) -> Recovery | None:
    """End a change that was interrupted: forwards if everything for it is there, else backwards.

    The caller holds the lock.

    Raises:
        TreeError: it can be ended neither way now.
    """
    journal = read(storage)
    if journal is None:
        return None
    title = phrase(
        "{root}: an interrupted run ({purpose}) can be neither finished nor taken back",
        root=storage.root,
        purpose=journal.purpose,
    )
    forwards = _try(storage, journal, "new")
    outcome = _try(storage, journal, "old") if forwards is None or isinstance(forwards, OSError) else forwards
    match outcome or forwards:
        case Recovery() as recovery:
            return recovery
        case OSError() as trouble:
            raise tree_error(trouble, title) from trouble
    raise TreeError(
        title,
        cause=phrase("files that it had laid by in {folder}/staged are missing or damaged", folder=FOLDER),
        advice=phrase("Set the tree right by hand or with git, then remove {folder}/journal.json.", folder=FOLDER),
    )


def _try(storage: Storage, journal: Journal, side: Side) -> Recovery | OSError | None:
    """End the change towards one side; None when what that takes is not there."""
    direction: Direction = "finished" if side == "new" else "rolled-back"
    try:
        if not _possible(storage, journal, side):
            return None
        kept = carry_out(storage, journal, side, strict=False)
    except OSError as error:
        return error
    return Recovery(journal.purpose, direction, tuple(step.path for step in journal.steps), kept)


def _possible(storage: Storage, journal: Journal, side: Side) -> bool:
    for number, step in enumerate(journal.steps):
        wanted, other = (step.new, step.old) if side == "new" else (step.old, step.new)
        if _digest_at(resolve(storage.root, step.path)) == other and (
            _digest_at(storage.staged / f"{number}.{side}") != wanted
        ):
            return False
    wanted_ledger = journal.ledger_new if side == "new" else journal.ledger_old
    current = _digest_at(storage.ledger)
    return wanted_ledger in (None, current) or _digest_at(storage.staged / f"ledger.{side}") == wanted_ledger


def _carry_out_ledger(storage: Storage, wanted: str | None, side: Side) -> None:
    if wanted is None:
        disk.remove(storage.ledger)
    elif _digest_at(storage.ledger) != wanted:
        disk.replace(storage.staged / f"ledger.{side}", storage.ledger)


def _digest_at(place: Path) -> str | None:
    try:
        return digest(disk.read(place)[0])
    except (FileNotFoundError, NotADirectoryError, disk.IrregularFileError):
        return None


def _drop_bytecode(place: Path) -> None:
    """Remove what Python has compiled from the file; its own check goes by second and size alone."""
    if place.suffix != ".py":
        return
    cache = place.parent / "__pycache__"
    for name in disk.names(cache):
        if name.startswith(f"{place.stem}.") and name.endswith(".pyc"):
            disk.remove_if_allowed(cache / name)
