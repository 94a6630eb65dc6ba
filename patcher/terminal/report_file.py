"""A report in a file: where a page may be written, and the writing, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from patcher.errors import TreeError, UsageError, message_of
from patcher.i18n import phrase
from patcher.worktree import files


def write_whole(file: Path, text: str) -> None:
    """Put the text where the file is; what was there stays if that fails. Raises TreeError."""
    try:
        files.replace(file, text.encode())
    except OSError as error:
        raise TreeError(phrase("{path}: cannot be written", path=file), cause=message_of(error)) from error


def page_file(file: Path) -> Path:
    """Where a page that was asked for goes, absolute. Nothing is replaced there but an earlier page.

    Raises:
        UsageError: its folder is not there, or there is something else under that name.
    """
    folder = file.parent.resolve()
    if not folder.is_dir():
        raise UsageError(
            phrase("--html {file}: there is no folder {folder}", file=file, folder=folder),
            advice=phrase("Make the folder first, or name a file in one that is there."),
        )
    place = folder / file.name
    if place.is_symlink():
        raise UsageError(
            phrase("--html {file} is a symlink, and nothing is written through one", file=file),
            advice=phrase("Name the file itself, or another one."),
        )
    try:
        text = files.read(place, files.DATA_BYTES)
    except FileNotFoundError:
        return place
    except OSError as error:
        raise UsageError(
            phrase("--html {file} cannot be replaced", file=file),
            cause=message_of(error),
            advice=phrase("Name another file."),
        ) from error
    if text and not (text[:15].lower() == b"<!doctype html>" and b"uky-patch" in text):
        raise UsageError(
            phrase("--html {file} is there already, and is no page of uky-patch", file=file),
            advice=phrase("Name another file, or move that one away."),
        )
    return place
