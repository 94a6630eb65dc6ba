"""The progress of a long step, such as a download: one line on standard error that the next message replaces.

Shown on a terminal only, and not where CI is set. With NO_COLOR or TERM=dumb, what takes more than 5 s is told once.
"""

from __future__ import annotations

import io
import os
import sys
import time
from typing import TYPE_CHECKING

from patcher.i18n import language, show
from patcher.terminal.layout import NARROW, shortened, width
from patcher.terminal.printing import end_passing, is_silent, room, say, show_passing
from patcher.terminal.sequences import is_dumb

if TYPE_CHECKING:
    import rich.progress

    from patcher.i18n import Phrase

_LONG = 5.0
"""Seconds after which a step is shown on a terminal where no line may pass."""


_SHORTEST = 10
"""Columns of the message that stay before its amount is cut instead."""


class _Transfer:
    """What is being transferred: its message, and what rich knows of its speed."""

    message = ""
    display: rich.progress.Progress | None = None


class _Step:
    """What was under way last, since when, and whether it was shown in a line that stays."""

    kind, since, written = "", 0.0, False


def progress(message: Phrase | str, done: int = 0, total: int | None = None) -> None:
    """Show what is under way on one line that the next message replaces, with bytes done and in all where known.

    An empty message, or all bytes done, clears the line; so does whatever else is shown, and the command's end. With
    CI set nothing is shown. With NO_COLOR or TERM=dumb no line is rewritten: what takes long is shown once.
    """
    if is_silent() or not sys.stderr.isatty() or os.environ.get("CI"):
        return
    message = "" if total and done >= total else message
    if is_dumb() or os.environ.get("NO_COLOR"):
        _tell_once(message)
    elif not message:
        end_passing()
    else:
        show_passing(_with_amount(show(message, language()), done, total))


def _with_amount(message: str, done: int, total: int | None) -> str:
    """The message with bytes, speed and the time that is left, in one line; from 100 columns on with a bar.

    rich draws the amount and is imported with the first bytes alone. `show_passing` shows the line: rich's own display
    would write past the guard of the streams, which takes secrets out, and would go on while ssh asks for a password.
    """
    if not done and not total:
        return message
    if not total:
        from rich.filesize import decimal

        return f"{message}  {decimal(done)}"
    columns = room(sys.stderr)
    if _Transfer.message != message or _Transfer.display is None:
        _Transfer.message, _Transfer.display = message, _new_display(with_bar=columns >= NARROW)
        _Transfer.display.add_task("", total=total)
    display = _Transfer.display
    display.update(display.task_ids[0], completed=done, total=total)
    with display.console.capture() as shown:
        display.console.print(display.get_renderable())
    amount = shown.get().strip()
    return f"{shortened(message, max(columns - width(amount) - 3, _SHORTEST))}  {amount}"


def _new_display(*, with_bar: bool) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    bar = [BarColumn(bar_width=20)] if with_bar else []
    console = Console(file=io.StringIO(), width=NARROW, color_system=None, legacy_windows=False)
    columns = (*bar, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, auto_refresh=False)


def _tell_once(message: Phrase | str) -> None:
    kind = message if isinstance(message, str) else message.template
    if kind != _Step.kind:
        _Step.kind, _Step.since, _Step.written = kind, time.monotonic(), False
    elif message and not _Step.written and time.monotonic() - _Step.since >= _LONG:
        _Step.written = True
        say(show(message, language()), err=True)
