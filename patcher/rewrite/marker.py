"""The markers that say which lines were changed, and by which record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from patcher.rewrite.outcome import EOL
from patcher.rewrite.pattern import SKIPPED

_STRING_OR_COMMENT = re.compile(SKIPPED, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker comment. A hand-written one has no record."""

    line: int
    record: str | None
    alone: bool
    """Whether the comment stands on a line of its own."""


@lru_cache(maxsize=8)
def marker_pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"#[ \t]*{re.escape(word)}(?!\w)(?:\[([^\]\r\n]*)\])?", re.IGNORECASE)


def ids(match: re.Match[str]) -> list[str | None]:
    return [part.strip() for part in (match[1] or "").split(",") if part.strip()] or [None]


def line_markers(line: str, word: str) -> list[str | None]:
    """The record ids, or None for a marker without one, that one line carries."""
    return [record for match in marker_pattern(word).finditer(line) for record in ids(match)]


def markers(source: str, word: str) -> tuple[Marker, ...]:
    """Every marker in a source, in order. In what is Python only comments count; elsewhere anything behind a `#`."""
    if word.casefold() not in source.casefold() or not marker_pattern(word).search(source):
        return ()
    text = source.removeprefix("\ufeff")
    starts = [0, *(end.end() for end in EOL.finditer(text))]
    found: list[Marker] = []
    for start, comment in _comments(text):
        number = next(n for n in range(len(starts), 0, -1) if starts[n - 1] <= start)
        alone = not text[starts[number - 1] : start].strip(" \t\f")
        for match in marker_pattern(word).finditer(comment):
            found += [Marker(number, record, alone) for record in ids(match)]
    return tuple(found)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Where comments begin, and what they say. A string is left out; one that stays open counts for nothing."""
    for match in _STRING_OR_COMMENT.finditer(text):
        if match[0].startswith("#"):
            yield match.start(), match[0]
