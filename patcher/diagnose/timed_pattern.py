"""Patterns of symptom records, searched for in time that a hostile line cannot stretch.

`re` tries each place of a line anew: `Error.*closed` on a line of a thousand `Error` reads the rest of the line a
thousand times. So a pattern is cut at each `.*` that stands alone: where nothing follows the first `Error`, nothing
follows a later one either. `TimedPattern` also counts what a pattern takes, and drops one that takes too long.
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
"""What one pattern may take of one log, or of one look at a run. The shipped ones take some milliseconds of 1 GB."""
_LONG = 200
"""Characters from which on a search gets a timer. Set by hand: its system calls cost more than a short search."""
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P=|\{\d*,?\d*\}|.", re.DOTALL)


class _OutOfTime(Exception):  # noqa: N818
    """The timer rang."""


class TimedPattern:
    """A pattern, compiled when first searched for, and what it has taken. Case does not matter."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.seconds = 0.0

    @property
    def is_too_slow(self) -> bool:
        """Whether it has taken more time than it may: from then on it finds nothing."""
        return self.seconds > MOST_SECONDS

    def finds(self, text: str) -> bool:
        """Whether the text has a match."""
        if self.is_too_slow:
            return False
        if len(text) < _LONG and self.seconds < MOST_SECONDS / 2 and not self._has_nested_repeats:
            return self._found(text)
        began = time.perf_counter()
        try:
            with _timer(MOST_SECONDS * 1.1 - self.seconds):
                return self._found(text)
        except _OutOfTime:
            self.seconds = 2 * MOST_SECONDS
            return False
        finally:
            self.seconds += time.perf_counter() - began

    def _found(self, text: str) -> bool:
        return any(_found_in_order(parts, text) for parts in self._alternatives)

    @cached_property
    def _alternatives(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        if re.search(r"\\[1-9]|\(\?P=", self.pattern):
            return ((re.compile(self.pattern, re.IGNORECASE),),)
        return tuple(tuple(_compiled(parts)) for parts in split_pattern(self.pattern))

    @cached_property
    def _has_nested_repeats(self) -> bool:
        """Whether it may repeat what is a repeat itself, so that even a short line can take for ever: `(a+)+`."""
        return re.search(r"[*+}?]\)+[*+{]", self.pattern) is not None


def split_pattern(pattern: str) -> list[list[str]]:
    """The alternatives of a pattern, each cut at every `.*` of its own level; with both, a text has a match exactly
    where it has one of some alternative's parts after the other."""
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
    """Every part but the last ends as early as it can, so that what follows has all the room there is."""
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


def _found_in_order(parts: tuple[re.Pattern[str], ...], text: str) -> bool:
    at = 0
    for part in parts:
        found = part.search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Raises `_OutOfTime` when so much time has gone. `re` asks for signals now and then; they come to the main thread
    alone, so elsewhere a search ends by itself and its time is counted then."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise _OutOfTime
