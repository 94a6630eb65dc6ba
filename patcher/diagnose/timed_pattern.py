"""Search for the patterns of symptom records in bounded time, whatever the line holds.

`re` tries a pattern at each position of a line: `Error.*closed` on a line with a thousand `Error` reads the rest of the
line a thousand times. So a pattern is cut at each `.*` at its top level: if nothing matches behind the first `Error`,
nothing matches behind a later one. `TimedPattern` also counts the time that a pattern takes, and drops one that takes
too long.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import FrameType

MOST_SECONDS = 1.0
"""Seconds of the processor that one pattern may take on one log, or in one look at a run. The
shipped ones take some milliseconds on 1 GB."""
_LONG = 200
"""Characters above which a search gets a timer. Set by hand: setting a timer takes longer than a short search."""
_BEGINNING = re.compile(r"(?<![\[\\])\^")
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P=|\{\d*,?\d*\}|.", re.DOTALL)


class _OutOfTime(Exception):  # noqa: N818
    """The timer expired."""


class TimedPattern:
    """A pattern that is compiled at its first search, with the time that it took so far. Case is ignored."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.seconds = 0.0

    @property
    def is_too_slow(self) -> bool:
        """Whether it took more time than it may. From then on it finds nothing."""
        return self.seconds > MOST_SECONDS

    def finds(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        if self.is_too_slow:
            return False
        if len(text) < _LONG and self.seconds < MOST_SECONDS / 2 and not self._has_nested_repeats:
            return self._found(text)
        if _SET_UP.timed:
            return self._found_in_time(text)
        with timers():
            return self._found_in_time(text)

    def _found_in_time(self, text: str) -> bool:
        """Whether it matches; False after so many seconds of the processor. A machine that is busy, or was asleep,
        does not count."""
        timed = _SET_UP.timed
        began = time.process_time()
        try:
            if timed:
                signal.setitimer(signal.ITIMER_VIRTUAL, max(MOST_SECONDS * 1.1 - self.seconds, 0.001))
            try:
                return self._found(text)
            finally:
                if timed:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        except _OutOfTime:
            self.seconds = 2 * MOST_SECONDS
            return False
        finally:
            self.seconds += time.process_time() - began

    def _found(self, text: str) -> bool:
        # Without a generator, as this runs several times for each line that may show a failure.
        for parts in self._alternatives:
            at = 0
            for part in parts:
                found = part.search(text, at)
                if found is None:
                    break
                at = found.end()
            else:
                return True
        return False

    @cached_property
    def is_anchored(self) -> bool:
        """Whether a part of it must stand at the beginning of a line."""
        return _BEGINNING.search(self.pattern) is not None

    @cached_property
    def _alternatives(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        if re.search(r"\\[1-9]|\(\?P=", self.pattern):
            return ((re.compile(self.pattern, re.IGNORECASE),),)
        return tuple(tuple(_compiled(parts)) for parts in split_pattern(self.pattern))

    @cached_property
    def _has_nested_repeats(self) -> bool:
        """Whether it may repeat a repeat, so that even a short line can take forever: `(a+)+`."""
        return re.search(r"[*+}?]\)+[*+{]", self.pattern) is not None


def split_pattern(pattern: str) -> list[list[str]]:
    """Split a pattern into its alternatives, and each alternative at every `.*` of its top level.

    The pattern matches a text exactly where all parts of one alternative match in order, without overlap.
    """
    ways: list[list[str]] = [[""]]
    pieces = [found.group() for found in _PIECE.finditer(pattern)]
    depth, at = 0, 0
    while at < len(pieces):
        piece = pieces[at]
        depth += (piece == "(") - (piece == ")")
        if not depth and piece == "|":
            ways.append([""])
        elif not depth and piece == "." and pieces[at + 1 : at + 2] == ["*"]:
            at += pieces[at + 2 : at + 3] == ["?"]
            ways[-1].append("")
            at += 1
        else:
            ways[-1][-1] += piece
        at += 1
    return ways


def _compiled(parts: list[str]) -> Iterator[re.Pattern[str]]:
    """Every part but the last is made lazy: it ends as early as possible, which leaves the most text for the next
    part."""
    for number, part in enumerate(parts):
        if part or len(parts) == 1:
            yield re.compile(part if number + 1 == len(parts) else _lazy(part), re.IGNORECASE)


def _lazy(part: str) -> str:
    found, before = "", ""
    pieces = [one.group() for one in _PIECE.finditer(part)]
    for piece, behind in zip(pieces, [*pieces[1:], ""], strict=True):
        counts = piece[0] == "{" and len(piece) > 2
        repeats = piece in ("*", "+") or counts or (piece == "?" and before[:1] not in ("(", "*", "+", "?", "{"))
        found += piece + ("?" if repeats and behind not in ("?", "+") else "")
        before = piece
    return found


class _SetUp(threading.local):
    timed = False
    """Whether this thread receives the signal of a timer, within `timers`."""


_SET_UP = _SetUp()


@contextmanager
def timers() -> Iterator[None]:
    """Have searches inside interrupted by timers, where this thread receives signals. To be set up once for many
    searches: it takes longer than one.

    `re` checks for signals while it searches. Only the main thread receives them; in other threads a search runs to its
    end, and its time is counted afterwards.
    """
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not main or _SET_UP.timed:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _on_alarm)
    _SET_UP.timed = True
    try:
        yield
    finally:
        _SET_UP.timed = False
        signal.signal(signal.SIGVTALRM, before)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise _OutOfTime
