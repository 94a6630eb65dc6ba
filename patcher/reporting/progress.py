"""Progress on standard error, on a terminal only."""

from __future__ import annotations

import sys


def progress(message: str) -> None:
    """Show what is under way on one line that the next message replaces; an empty message clears it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{message}")
        sys.stderr.flush()
