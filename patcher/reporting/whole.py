"""Reports are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from patcher.errors import TreeError
from patcher.language import phrase
from patcher.language.said import said


def write_whole(file: Path, text: str) -> None:
    """Put the text where the file is; what was there stays if that fails. Raises TreeError."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise TreeError(phrase("{path}: cannot be written", path=file), cause=said(error)) from error
