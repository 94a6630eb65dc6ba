"""The time that a line tells, in whatever form its logger writes it."""

from __future__ import annotations

import re
from datetime import datetime

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS = (
    re.compile(rf"(?<!\d)(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T _]{_CLOCK}(?:[.,](?P<part>\d+))?"),
    re.compile(rf"(?<!\d)(?P<month>\d\d)-(?P<day>\d\d) {_CLOCK}(?:[.,](?P<part>\d+))?(?!\d)"),
    re.compile(rf"(?:^|\[|\]:?)[WEIF](?P<year>20\d\d)?(?P<month>\d\d)(?P<day>\d\d) {_CLOCK}\.(?P<part>\d+) "),
)
_HEAD = 120


def time_of(text: str, year: int) -> float | None:
    """Seconds since 1970 by the time near the beginning of a line, in local time; `year` counts where it tells none."""
    head = text[:_HEAD]
    for form in _FORMS:
        if found := form.search(head):
            told = found.groupdict()
            year, month, day, hour, minute, second = (
                int(told.get(name) or default)
                for name, default in (
                    ("year", year),
                    ("month", 1),
                    ("day", 1),
                    ("hour", 0),
                    ("minute", 0),
                    ("second", 0),
                )
            )
            try:
                whole = datetime(year, month, day, hour, minute, second)
            except ValueError:
                continue
            return whole.timestamp() + float(f"0.{told['part'] or 0}")
    return None
