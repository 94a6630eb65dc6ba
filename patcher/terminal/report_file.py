"""A report in a file: written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from patcher.errors import TreeError, message_of
from patcher.i18n import phrase
from patcher.worktree import files


def write_whole(file: Path, text: str) -> None:
    """Put the text where the file is; what was there stays if that fails. Raises TreeError."""
    try:
        files.replace(file, text.encode())
    except OSError as error:
        raise TreeError(phrase("{path}: cannot be written", path=file), cause=message_of(error)) from error
