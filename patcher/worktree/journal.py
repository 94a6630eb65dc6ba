"""The journal of a change: written before the first file is replaced, so that the next run can end an interrupted one.

When the journal is on the disk, every new file is whole in `staged/<n>.new` and every old one in `staged/<n>.old`.
Files are replaced by renaming. So a change has two sides, `old` and `new`, and each step towards either can be
repeated.

Pre-images are moved into `originals` before files are replaced, and those that are no longer needed are moved back to
`staged` afterwards. Only those that a journal names are ever removed.

A file that does not exist on one side has the digest ABSENT there, and no staged file. Folders are made as files need
them; those that the journal names are removed if they are empty in the end:

    verl/flags/log.py is new, and so is its folder      folders: verl/flags
    towards `new`                                       it has a file, and stays
    towards `old`                                       it is empty, and is removed
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Iterable, Literal

from patcher import __version__
from patcher.messages import Refusal, message_of, phrase
from patcher.worktree import disk, files
from patcher.worktree.hashing import ABSENT
from patcher.worktree.json_text import parse_json
from patcher.worktree.layout import FOLDER, JOURNAL
from patcher.worktree.ledger import NOTE, is_digest
from patcher.worktree.os_errors import refused
from patcher.worktree.path_guard import resolve
from patcher.worktree.storage import Storage, digest_at

FORMAT = 3
"""Formats 1 (names no pre-images) and 2 (makes and removes no files) can be read too."""
Direction = Literal["finished", "rolled-back"]
Side = Literal["old", "new"]


@dataclass(frozen=True)
class Step:
    """One file to replace, make or remove, with its SHA-256 before and after; ABSENT where it does not exist."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Journal:
    """Everything that a change does. The ledger is replaced last."""

    purpose: str
    """The command, such as `apply`."""
    steps: tuple[Step, ...]
    ledger_old: str | None
    """The SHA-256 of the ledger's file before; None if there is none."""
    ledger_new: str | None
    """The same after the change."""
    placed: tuple[str, ...] = ()
    """Names of new pre-images and notes, in `staged` until they are moved to `originals`."""
    fresh: tuple[str, ...] = ()
    """Digests of pre-images that were not there before; they are removed if the change is taken back."""
    dropped: tuple[str, ...] = ()
    """Digests of pre-images that are not needed after the change."""
    folders: tuple[str, ...] = ()
    """Folders of files that are made or removed; they are removed if they are empty in the end."""


@dataclass(frozen=True)
class Recovery:
    """A change that an earlier run did not end, and how this run has ended it."""

    purpose: str
    direction: Direction
    files: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Paths of files that somebody has changed since the interruption; they are left as they are."""


class ChangedMeanwhileError(Exception):
    """A file is no longer what it was when the change was planned."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def write(storage: Storage, journal: Journal) -> None:
    """Write the journal in one step. When this returns, it and everything staged is on the disk."""
    data = {"format": FORMAT, "tool": __version__, **asdict(journal)}
    disk.sync(storage.staged)
    files.write_whole_file(storage.journal, json.dumps(data, indent=1).encode(), draft=storage.staged / "journal")


def read(storage: Storage) -> Journal | None:
    """The journal of an interrupted change; None if there is none.

    Raises:
        Refusal: it is damaged, of a newer format, or cannot be read.
    """
    try:
        content, _ = disk.read(storage.journal)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refused(error, phrase("{path}: cannot be read", path=JOURNAL)) from error
    try:
        data = parse_json(content)
        if data["format"] not in (1, 2, FORMAT):
            raise Refusal(
                "journal",
                phrase(
                    "{path}: written by another uky-patch ({version})",
                    path=JOURNAL,
                    version=data.get("tool", phrase("of unknown version")),
                ),
                phrase("that run was interrupted, and only its own version knows how to end it"),
                phrase("Run any command of that version once, such as `uky-patch status`."),
            )
        steps = tuple(Step(str(step["path"]), step["old"], step["new"]) for step in data["steps"])
        journal = Journal(
            str(data["purpose"]),
            steps,
            data["ledger_old"],
            data["ledger_new"],
            *(tuple(str(name) for name in data.get(key, ())) for key in ("placed", "fresh", "dropped", "folders")),
        )
        if data["format"] == 1 and journal.ledger_new is None:
            journal = replace(journal, dropped=tuple(step.new for step in steps))
        digests = [sha for step in steps for sha in (step.old, step.new)]
        digests += [_without_note(name) for name in journal.placed]
        digests += [*journal.fresh, *journal.dropped]
        digests += [sha for sha in (journal.ledger_old, journal.ledger_new) if sha is not None]
        if not all(map(is_digest, digests)):
            raise ValueError(phrase("a digest is no SHA-256"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refusal(
            "journal",
            phrase("{path}: damaged", path=JOURNAL),
            message_of(error),
            phrase(
                "The files before and after are in {folder}/staged. Set the tree right by hand or with git, "
                "then remove {folder}/journal.json and {folder}/staged.",
                folder=FOLDER,
            ),
        ) from error
    return journal


def carry_out(
    storage: Storage, journal: Journal, side: Side, *, strict: bool, untouched: str | None = None
) -> tuple[str, ...]:
    """Bring every file and the ledger to one side of the change, and remove the journal. Can be repeated.

    Returns the paths of files whose digest is that of neither side: they are left, and their pre-images stay. Only the
    pre-image of `untouched` goes: the caller knows that this file was not replaced.

    Raises:
        ChangedMeanwhileError: with `strict`, for such a file.
        OSError: a step failed; it can be tried again.
    """
    kept, folders = [], {storage.folder, *(resolve(storage.root, folder).parent for folder in journal.folders)}
    _move(journal.placed if side == "new" else _with_notes(journal.dropped), storage.staged, storage.originals)
    for number, step in enumerate(journal.steps):
        place = resolve(storage.root, step.path)
        wanted, other = (step.new, step.old) if side == "new" else (step.old, step.new)
        current = digest_at(place)
        if current == other and wanted == ABSENT:
            disk.remove(place)
        elif current == other:
            disk.make_folders(str(place.parent))
            disk.replace(storage.staged / f"{number}.{side}", place)
        elif current != wanted:
            if strict:
                raise ChangedMeanwhileError(step.path)
            kept.append(step.path)
            continue
        # Bytecode does harm only if the old and new source have the same second and size, so a failure is no error.
        with contextlib.suppress(PermissionError):
            disk.remove_bytecode(place)
        folders.add(place.parent)
    _remove_empty(resolve(storage.root, folder) for folder in journal.folders)
    _carry_out_ledger(storage, journal, side)
    for folder in {_nearest_folder(folder) for folder in folders}:
        disk.sync(folder)
    left = [step for step in journal.steps if step.path in kept and step.path != untouched]
    needed = {sha256 for step in left for sha256 in (step.old, step.new)}
    gone = [sha256 for sha256 in (journal.dropped if side == "new" else journal.fresh) if sha256 not in needed]
    _move(_with_notes(gone), storage.originals, storage.staged)
    disk.remove(storage.journal)
    return tuple(kept)


def recover(storage: Storage) -> Recovery | None:
    """Finish an interrupted change if everything that it needs is there, else take it back. None if there is none.

    The caller holds the lock.

    Raises:
        Refusal: neither is possible now.
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
    outcome = forwards if isinstance(forwards, Recovery) else _try(storage, journal, "old") or forwards
    if isinstance(outcome, Recovery):
        return outcome
    if isinstance(outcome, OSError):
        raise refused(outcome, title) from outcome
    cause = phrase("files that it had laid by in {folder}/staged are missing or damaged", folder=FOLDER)
    advice = phrase("Set the tree right by hand or with git, then remove {folder}/journal.json.", folder=FOLDER)
    raise Refusal("journal", title, cause, advice)


def _try(storage: Storage, journal: Journal, side: Side) -> Recovery | OSError | None:
    """Bring the change to one side. Returns None if a staged file for that is missing, and an error of the disk."""
    direction: Direction = "finished" if side == "new" else "rolled-back"
    try:
        if not _possible(storage, journal, side):
            return None
        kept = carry_out(storage, journal, side, strict=False)
    except OSError as error:
        return error
    return Recovery(journal.purpose, direction, tuple(step.path for step in journal.steps), kept)


def _possible(storage: Storage, journal: Journal, side: Side) -> bool:
    """Whether every file that `carry_out` would move is there and whole."""
    for number, step in enumerate(journal.steps):
        wanted, other = (step.new, step.old) if side == "new" else (step.old, step.new)
        if (
            wanted != ABSENT
            and digest_at(resolve(storage.root, step.path)) == other
            and (digest_at(storage.staged / f"{number}.{side}") != wanted)
        ):
            return False
    if side == "new" and not all(_is_placed(storage, name) for name in journal.placed if is_digest(name)):
        return False
    wanted_ledger = journal.ledger_new if side == "new" else journal.ledger_old
    current = digest_at(storage.ledger)
    return wanted_ledger in (None, current) or digest_at(storage.staged / f"ledger.{side}") == wanted_ledger


def _is_placed(storage: Storage, sha256: str) -> bool:
    return any(digest_at(folder / sha256) == sha256 for folder in (storage.staged, storage.originals))


def _without_note(name: str) -> str:
    return name[: -len(NOTE)] if name.endswith(NOTE) else name


def _with_notes(digests: Iterable[str]) -> list[str]:
    return [name for sha256 in digests for name in (sha256, sha256 + NOTE)]


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move the files that are still in `source`; the others were moved by the run that was interrupted."""
    for name in names:
        if disk.status(source / name) is not None:
            disk.replace(source / name, target / name)
    disk.sync(target)


def _carry_out_ledger(storage: Storage, journal: Journal, side: Side) -> None:
    """Write the ledger of that side. It is copied, not moved: the staged one is needed if this has to be repeated.

    A ledger of neither side, or something that is no file, is moved to the kept copies.
    """
    wanted = journal.ledger_new if side == "new" else journal.ledger_old
    current = digest_at(storage.ledger)
    if current not in (journal.ledger_old, journal.ledger_new) or current is None:
        storage.set_ledger_aside()
    if wanted is None:
        disk.remove(storage.ledger)
    elif current != wanted:
        content, _ = disk.read(storage.staged / f"ledger.{side}")
        files.write_whole_file(storage.ledger, content, draft=storage.staged / "ledger")


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that are empty, innermost first. An empty `__pycache__` does not count."""
    for folder in sorted(folders, reverse=True):
        disk.remove_folder_if_allowed(folder / "__pycache__")
        disk.remove_folder(folder)


def _nearest_folder(folder: Path) -> Path:
    """The folder itself if it exists, else the first above it that does."""
    return folder if disk.status(folder) is not None else _nearest_folder(folder.parent)
