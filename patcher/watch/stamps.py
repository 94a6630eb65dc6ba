"""When lines of a log were written, where only their own words tell."""

from __future__ import annotations

import os
import re
import time
from typing import BinaryIO

REACH = 1 << 16
"""Bytes before a line in which a time is looked for."""
_STAMP = re.compile(
    rb"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)|\b(?P<day>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)\b"
)
_HALF_HOUR = 1800.0
_NEAR = 60.0


class Stamps:
    """The times that loggers have put before their lines, as seconds since 1970. `wrote`: when the file last grew."""

    def __init__(self, log: BinaryIO, wrote: float) -> None:
        self._log = log
        self._wrote = wrote
        size = os.fstat(log.fileno()).st_size
        last = self._found(size, last=True)
        self._shift = _shift(last, wrote) if last is not None else 0.0
        first = self._found(min(size, REACH), last=False)
        self.first = None if first is None else first + self._shift

    def at(self, offset: int) -> float | None:
        """The last time that is told before the byte at `offset`; None where none is near."""
        found = self._found(offset + 1, last=True)
        return None if found is None else min(found + self._shift, self._wrote)

    def _found(self, end: int, *, last: bool) -> float | None:
        begin = max(0, end - REACH)
        piece = os.pread(self._log.fileno(), end - begin, begin)
        found = [stamp for match in _STAMP.finditer(piece) if (stamp := _seconds(match, self._wrote)) is not None]
        if not found:
            return None
        return found[-1] if last else found[0]


def _seconds(match: re.Match[bytes], wrote: float) -> float | None:
    year = time.localtime(wrote).tm_year
    date = match["date"] or f"{year}-".encode() + match["day"]
    text = (date + b" " + (match["time"] or match["clock"])).decode("ascii")
    try:
        found = time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
        if not match["date"] and found > wrote + 86400:
            found = time.mktime(time.strptime(f"{year - 1}{text[4:]}", "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None
    return found


def _shift(last: float, wrote: float) -> float:
    """What a clock of another time zone is off by: whole half hours between the last time told and the last write."""
    whole = round((wrote - last) / _HALF_HOUR) * _HALF_HOUR
    return whole if whole and abs(wrote - last - whole) < _NEAR and abs(whole) <= 14 * 3600 else 0.0
