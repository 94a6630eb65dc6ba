"""Progress on standard error, on a terminal only."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from patcher.i18n import language, phrase, show
from patcher.terminal.printing import end_passing, is_dumb, is_silent, say, show_passing

if TYPE_CHECKING:
    from patcher.i18n import Phrase

_LONG = 5.0
"""Seconds after which a step is told on a terminal where no line may pass."""


class _Step:
    """What was under way last, since when, and whether it was told in a line that stays."""

    kind, since, told = "", 0.0, False


def progress(message: Phrase | str, done: int = 0, total: int | None = None) -> None:
    """Show what is under way on one line that the next message replaces, with bytes done and in all where known.

    An empty message, or all bytes done, clears the line; so does whatever else is shown, and the command's end. With
    CI set nothing is shown. With NO_COLOR or TERM=dumb no line is rewritten: what takes long is told once.
    """
    if is_silent() or not sys.stderr.isatty() or os.environ.get("CI"):
        return
    message = "" if total and done >= total else message
    if is_dumb() or os.environ.get("NO_COLOR"):
        _tell_once(message)
    elif not message:
        end_passing()
    else:
        show_passing(f"{show(message, language())}{_amount(done, total)}")


def _amount(done: int, total: int | None) -> str:
    if total:
        parts = phrase("{done} of {total} MB", done=f"{done / 1e6:.0f}", total=f"{total / 1e6:.0f}")
        return f"  {show(parts, language())}"
    return f"  {done / 1e6:.0f} MB" if done else ""


def _tell_once(message: Phrase | str) -> None:
    kind = message if isinstance(message, str) else message.template
    if kind != _Step.kind:
        _Step.kind, _Step.since, _Step.told = kind, time.monotonic(), False
    elif message and not _Step.told and time.monotonic() - _Step.since >= _LONG:
        _Step.told = True
        say(show(message, language()), err=True)
