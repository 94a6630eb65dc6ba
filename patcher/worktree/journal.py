"""A change under way, written down before the first file is replaced, so that whoever comes next can end it.

Once the journal is there, every new file lies whole in `staged/<n>.new` and every old one in `staged/<n>.old`; a file
is replaced by renaming. So each step can be repeated, and each can be taken back. Pre-images come before the files are
replaced and go after, to `staged`, and only those that the journal names: nothing else ever removes one.

A file that is not there on one side has the digest ABSENT there, and nothing is staged for that side: it is removed.
The folders that it needs are made with it. Those that the journal names go where they are empty on the side reached:

    verl/flags/log.py made, in a folder of its own      folders: verl/flags
    forwards                                            it holds a file, and stays
    backwards                                           it is empty, and goes
"""

from __future__ import annotations

import contextlib
import errno
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Iterable, Literal

from patcher import __version__
from patcher.messages import Refusal, message_of, phrase
from patcher.worktree import disk, files
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.json_text import parse_json
from patcher.worktree.layout import FOLDER, JOURNAL
from patcher.worktree.ledger import NOTE, is_digest
from patcher.worktree.os_errors import refused
from patcher.worktree.path_guard import resolve
from patcher.worktree.storage import Storage

FORMAT = 3
"""1, which named no pre-images, and 2, which made and removed no files, are read too."""
Direction = Literal["finished", "rolled-back"]
Side = Literal["old", "new"]


@dataclass(frozen=True)
class Step:
    """One file to replace, make or remove: its digest before and after."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Journal:
    """All that a change does. The ledger comes last; None: there is none before, or none after."""

    purpose: str
    steps: tuple[Step, ...]
    ledger_old: str | None
    ledger_new: str | None
    placed: tuple[str, ...] = ()
    """Names of pre-images and of their notes, in `staged` until they are moved to `originals`."""
    fresh: tuple[str, ...] = ()
    """Digests of the pre-images that were not there before; they go if the change is taken back."""
    dropped: tuple[str, ...] = ()
    """Digests of the pre-images that are not needed once the change is done."""
    folders: tuple[str, ...] = ()
    """Folders of files that are made or removed: they go where they are empty in the end."""


@dataclass(frozen=True)
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
    disk.sync(storage.staged)
    files.write_whole_file(storage.journal, json.dumps(data, indent=1).encode(), draft=storage.staged / "journal")


def read(storage: Storage) -> Journal | None:
    """The journal of a change that was interrupted, if there is one.

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
    """Bring every file and the ledger to one side of the change, and remove the journal.

    Returns the files that are on neither side and were therefore left. Their pre-images stay, but for that of
    `untouched`, which is known not to have been replaced.

    Raises:
        ChangedMeanwhileError: a file is on neither side, and `strict` is set.
        OSError: a step could not be taken; it can be tried again.
    """
    kept, folders = [], {storage.folder, *(resolve(storage.root, folder).parent for folder in journal.folders)}
    _move(journal.placed if side == "new" else _with_notes(journal.dropped), storage.staged, storage.originals)
    for number, step in enumerate(journal.steps):
        place = resolve(storage.root, step.path)
        wanted, other = (step.new, step.old) if side == "new" else (step.old, step.new)
        current = _digest_at(place)
        if current == other and wanted == ABSENT:
            disk.remove(place)
        elif current == other:
            _make_folders(place.parent)
            disk.replace(storage.staged / f"{number}.{side}", place)
        elif current != wanted:
            if strict:
                raise ChangedMeanwhileError(step.path)
            kept.append(step.path)
            continue
        with contextlib.suppress(PermissionError):  # It does no harm but in the second in which it was made.
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
    """End a change that was interrupted: forwards if everything for it is there, else backwards.

    The caller holds the lock.

    Raises:
        Refusal: it can be ended neither way now.
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
        if (
            wanted != ABSENT
            and _digest_at(resolve(storage.root, step.path)) == other
            and (_digest_at(storage.staged / f"{number}.{side}") != wanted)
        ):
            return False
    if side == "new" and not all(_is_placed(storage, name) for name in journal.placed if is_digest(name)):
        return False
    wanted_ledger = journal.ledger_new if side == "new" else journal.ledger_old
    current = _digest_at(storage.ledger)
    return wanted_ledger in (None, current) or _digest_at(storage.staged / f"ledger.{side}") == wanted_ledger


def _is_placed(storage: Storage, sha256: str) -> bool:
    return any(_digest_at(folder / sha256) == sha256 for folder in (storage.staged, storage.originals))


def _without_note(name: str) -> str:
    return name[: -len(NOTE)] if name.endswith(NOTE) else name


def _with_notes(digests: Iterable[str]) -> list[str]:
    return [name for sha256 in digests for name in (sha256, sha256 + NOTE)]


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move those that are still to be moved; so it can be repeated, and taken back."""
    for name in names:
        if disk.status(source / name) is not None:
            disk.replace(source / name, target / name)
    disk.sync(target)


def _carry_out_ledger(storage: Storage, journal: Journal, side: Side) -> None:
    """Write the ledger of that side, as a file of its own: what is staged stays whole whatever becomes of it."""
    wanted = journal.ledger_new if side == "new" else journal.ledger_old
    current = _digest_at(storage.ledger)
    if current not in (journal.ledger_old, journal.ledger_new) or current is None:
        storage.set_ledger_aside()
    if wanted is None:
        disk.remove(storage.ledger)
    elif current != wanted:
        content, _ = disk.read(storage.staged / f"ledger.{side}")
        files.write_whole_file(storage.ledger, content, draft=storage.staged / "ledger")


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing."""
    if disk.status(folder) is None:
        _make_folders(folder.parent)
        disk.make_folder(folder)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders that are empty, from the innermost; what Python has compiled in them is nothing."""
    for folder in sorted(folders, reverse=True):
        disk.remove_folder_if_allowed(folder / "__pycache__")
        disk.remove_folder(folder)


def _nearest_folder(folder: Path) -> Path:
    """The folder itself, or the first above it that is there."""
    return folder if disk.status(folder) is not None else _nearest_folder(folder.parent)


def _digest_at(place: Path) -> str | None:
    """The digest of the file that is there; None where something else is, or a symlink."""
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
