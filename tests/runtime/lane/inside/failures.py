"""An exception as it is told: type, first line without this machine's paths, and where in a tree it was raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_FILE = re.compile(r" \((?:/[^()]*|unknown location)\)")


def failure(error: BaseException, paths: Sequence[str]) -> tuple[str, str, str]:
    """Type, message with those of its causes behind it, and `file:line` of the tree's innermost frame, "" without one.

    The frame is that of the first cause, where the error was raised from one.
    """
    text, place = message(error), _place(error, paths)
    cause = error.__cause__
    while cause is not None:
        text += f"; from {type(cause).__name__}: {message(cause)}"
        place = _place(cause, paths) or place
        cause = cause.__cause__
    return type(error).__name__, text, place


def message(error: BaseException) -> str:
    """Its first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = _FILE.sub("", lines[0] if lines else "")
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _place(error: BaseException, paths: Sequence[str]) -> str:
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        for path in paths:
            if file.startswith(f"{path}/"):
                found = f"{Path(file).relative_to(path).as_posix()}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
