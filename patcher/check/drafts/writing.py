"""Drafts, written to a folder that keeps what differs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.check.drafts.inputs import Draft
from patcher.errors import TreeError, UsageError, message_of
from patcher.i18n import phrase
from patcher.records.model import Record
from patcher.records.parse import parse
from patcher.worktree import files


@dataclass(frozen=True, slots=True)
class Written:
    """Where the drafts are: written now, there already with the same text, or kept back by a file that differs."""

    written: tuple[Path, ...] = ()
    unchanged: tuple[Path, ...] = ()
    differing: tuple[Path, ...] = ()
    failed: TreeError | None = None
    """Why the rest was not written: for whoever tells what was found to raise afterwards."""


def require_folder(folder: Path) -> None:
    """Raise `UsageError` where drafts could never be written: the folder, or one that it lies in, is a file."""
    there = next((one for one in (folder, *folder.absolute().parents) if one.exists()), folder)
    if there.exists() and not there.is_dir():
        raise UsageError(
            phrase("cannot write drafts to {folder}", folder=folder),
            cause=phrase("{folder} is no folder", folder=there),
            advice=phrase("Give --draft a folder that can be written to."),
        )


def write_drafts(drafts: Iterable[Draft], folder: Path) -> Written:
    """Write each draft as `<id>.toml`, as far as the folder takes them."""
    written: list[Path] = []
    unchanged: list[Path] = []
    differing: list[Path] = []
    failed = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for draft in drafts:
            path = folder / f"{draft.id}.toml"
            # A file that is there already is never overwritten: somebody may have reviewed and changed it.
            if files.create_whole(path, draft.text.encode()):
                written.append(path)
            else:
                (unchanged if _holds(path, draft.text.encode()) else differing).append(path)
    except OSError as error:
        failed = TreeError(
            phrase("cannot write drafts to {folder}", folder=folder),
            cause=message_of(error),
            advice=phrase("Give --draft a folder that can be written to."),
        )
    return Written(tuple(written), tuple(unchanged), tuple(differing), failed)


def as_written(drafts: Iterable[Draft], result: Written) -> tuple[Draft, ...]:
    """The drafts as they stand in their files: one that was edited there is what apply would take, and counts.

    One whose file is no record any more is left out.
    """
    found = []
    edited = {path.stem: path for path in result.differing}
    for draft in drafts:
        record = _read(edited[draft.id]) if draft.id in edited else draft.record
        if record is not None:
            found.append(replace(draft, text=record.source, record=record) if draft.id in edited else draft)
    return tuple(found)


def _read(path: Path) -> Record | None:
    try:
        found = parse(files.read_text(path, files.SETTINGS_BYTES, follow=True), path)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, Record) else None


def _holds(path: Path, content: bytes) -> bool:
    try:
        return files.read(path, files.SETTINGS_BYTES, follow=True) == content
    except OSError:
        return False
