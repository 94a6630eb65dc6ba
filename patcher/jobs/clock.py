"""When a byte of a log was written: from notes of how long the log was when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Clock:
    """Notes for the bytes that are read next; they are asked for in order."""

    def __init__(self) -> None:
        self._notes: list[tuple[float, int]] = []
        self._upto = 0.0
        self._last = 0.0

    def note(self, times: Iterable[Sequence[float]], upto: float) -> None:
        """`times`: seconds since the start, and how many bytes the log had then. `upto`: when this was told."""
        self._notes = [(float(seconds), int(size)) for seconds, size in times]
        self._upto = upto

    def at(self, end: int) -> float:
        """Seconds since the job's start at which the byte before `end` was there, to the precision of the notes."""
        while self._notes and self._notes[0][1] < end:
            del self._notes[0]
        self._last = max(self._last, self._notes[0][0] if self._notes else self._upto)
        return self._last
