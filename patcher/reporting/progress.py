"""Progress on standard error, on a terminal only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from patcher.language import language, phrase, show
from patcher.terminal import CLEAR

if TYPE_CHECKING:
    from patcher.language import Phrase


def progress(message: Phrase | str, done: int = 0, total: int | None = None) -> None:
    """Show what is under way on one line that the next message replaces, with bytes done and in all where known.

    An empty message, or all bytes done, clears the line.
    """
    if not sys.stderr.isatty():
        return
    amount = ""
    if total:
        message = message if done < total else ""
        parts = phrase("{done} of {total} MB", done=f"{done / 1e6:.0f}", total=f"{total / 1e6:.0f}")
        amount = f"  {show(parts, language())}" if message else ""
    elif done:
        amount = f"  {done / 1e6:.0f} MB"
    sys.stderr.write(f"{CLEAR}{show(message, language())}{amount}")
    sys.stderr.flush()
