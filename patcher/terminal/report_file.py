"""Files that reports are written to (`--html`, `--markdown`, `--sarif`): what may be replaced there, and the atomic
write.

Only an earlier page or report of this tool is replaced; another file, a symlink or a missing folder is a UsageError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from patcher.errors import TreeError, UsageError, message_of
from patcher.i18n import phrase
from patcher.worktree import files


def write_whole(file: Path, text: str) -> None:
    """Put the text where the file is; what was there stays if that fails. Raises TreeError."""
    try:
        files.write_whole_file(file, text.encode())
    except OSError as error:
        raise TreeError(phrase("{path}: cannot be written", path=file), cause=message_of(error)) from error


MARKDOWN = "<!-- uky-patch: pins -->"
"""The first line of a report in Markdown, by which a later run knows its own file."""


def page_file(file: Path | None) -> Path | None:
    """Where a page that was asked for with --html goes, absolute; None where none was. Replaces only an earlier page.

    Raises:
        UsageError: its folder is not there, or there is something else under that name.
    """
    return _own_file(file, "--html", lambda text: text[:15].lower() == b"<!doctype html>" and b"uky-patch" in text)


def markdown_file(file: Path | None) -> Path | None:
    """Where a report in Markdown goes, likewise. Raises UsageError."""
    return _own_file(file, "--markdown", lambda text: text.startswith(MARKDOWN.encode()))


def sarif_file(file: Path | None) -> Path | None:
    """Where findings in SARIF go, likewise. Raises UsageError."""
    return _own_file(file, "--sarif", lambda text: b'"$schema"' in text[:20] and b'"name": "uky-patch"' in text)


def _own_file(file: Path | None, option: str, is_own: Callable[[bytes], bool]) -> Path | None:
    if file is None:
        return None
    # `--html -` means standard output elsewhere, and the result is told there already.
    if str(file) == "-":
        raise UsageError(
            phrase("{option} needs the name of a file, and - is none", option=option),
            advice=phrase("The result itself goes to standard output: --format json prints it for programs."),
        )
    folder = file.parent.resolve()
    if not folder.is_dir():
        raise UsageError(
            phrase("{option} {file}: there is no folder {folder}", option=option, file=file, folder=folder),
            advice=phrase("Make the folder first, or name a file in one that is there."),
        )
    place = folder / file.name
    if place.is_symlink():
        raise UsageError(
            phrase("{option} {file} is a symlink, and nothing is written through one", option=option, file=file),
            advice=phrase("Name the file itself, or another one."),
        )
    try:
        text = files.read(place, files.DATA_BYTES)
    except FileNotFoundError:
        return place
    except OSError as error:
        raise UsageError(
            phrase("{option} {file} cannot be replaced", option=option, file=file),
            cause=message_of(error),
            advice=phrase("Name another file."),
        ) from error
    if text and not is_own(text):
        raise UsageError(
            phrase("{option} {file} is there already, and was not written by uky-patch", option=option, file=file),
            advice=phrase("Name another file, or move that one away."),
        )
    return place
