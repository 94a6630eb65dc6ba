"""Marker comments, which say which lines were changed and by which record; and texts without them.

    limit = 8  # Uky[fork-limit]                one record
    port = 1  # Uky[fork-port, vllm-port]       two records that have changed this line
    wait = 9  # Uky: the cluster needs more     a hand's: no record's id

The word, here `Uky`, is `marker` of uky-patch.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from patcher.rewrite.outcome import BOM, EOL
from patcher.rewrite.pattern import SKIPPED

if TYPE_CHECKING:
    from patcher.rewrite.edits import Mark

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
    """`# Uky` in any case, and the ids in brackets behind it as the first group."""
    return re.compile(rf"#[ \t]*{re.escape(word)}(?!\w)(?:\[([^\]\r\n]*)\])?", re.IGNORECASE)


def ids(match: re.Match[str]) -> list[str | None]:
    """The ids of one marker; [None] for one without."""
    return [part.strip() for part in (match[1] or "").split(",") if part.strip()] or [None]


def line_markers(line: str, word: str) -> list[str | None]:
    """The record ids, or None for a marker without one, that one line carries."""
    return [record for match in marker_pattern(word).finditer(line) for record in ids(match)]


def markers(source: str, word: str) -> tuple[Marker, ...]:
    """Every marker in a source, in order. In what is Python only comments count; elsewhere anything behind a `#`."""
    if word.casefold() not in source.casefold() or not marker_pattern(word).search(source):
        return ()
    text = source.removeprefix(BOM)
    starts = [0, *(end.end() for end in EOL.finditer(text))]
    found: list[Marker] = []
    for start, comment in _comments(text):
        number = next(n for n in range(len(starts), 0, -1) if starts[n - 1] <= start)
        alone = not text[starts[number - 1] : start].strip(" \t\f")
        for match in marker_pattern(word).finditer(comment):
            found += [Marker(number, record, alone) for record in ids(match)]
    return tuple(found)


def foreign_record(line: str, mark: Mark, may_touch: frozenset[str]) -> str | None:
    """The record, neither `mark`'s own nor one of `may_touch`, that has marked this line: it may not be edited."""
    ids = line_markers(line, mark.word)
    return next((record for record in ids if record not in (None, mark.record) and record not in may_touch), None)


def split_lines(text: str) -> tuple[list[str], list[str]]:
    """The lines of a text as Python counts them, and their ends; no last line where the text ends in a newline."""
    lines, ends = EOL.split(text), EOL.findall(text)
    return (lines[:-1], ends) if lines[-1] == "" else (lines, [*ends, ""])


def split(text: str) -> list[str]:
    """The lines of a text as Python counts them, without their ends."""
    return split_lines(text)[0]


def split_whole(text: str) -> list[str]:
    """The same lines with their ends."""
    return [line + end for line, end in zip(*split_lines(text), strict=True)]


def without_markers(text: str, word: str) -> str:
    """The text without the comments that carry the fork's marker; a line that is such a comment goes whole.

    limit = 5  # Uky: was 3          limit = 5
    # limit = 3  # Uky
    """
    found = markers(text, word)
    if not found:
        return text
    pattern = marker_pattern(word)
    alone = {one.line for one in found if one.alone}
    behind = {one.line for one in found if not one.alone}
    lines = []
    for number, line in enumerate(split_whole(text), start=1):
        if number in alone:
            continue
        if number in behind:
            body = line.rstrip("\r\n")
            last = [*pattern.finditer(body)][-1]
            line = body[: last.start()].rstrip() + line[len(body) :]
        lines.append(line)
    return "".join(lines)


def shown_line(text: str, word: str, index: int) -> int:
    """The line, from 1, of a text with its markers that a line of `without_markers` is; `index` counts from 0."""
    alone = {one.line for one in markers(text, word) if one.alone}
    lines = [number for number in range(1, len(split(text)) + 1) if number not in alone]
    return lines[index] if index < len(lines) else len(lines) + len(alone)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Where comments begin, and what they say. A string is left out; one that stays open counts for nothing."""
    for match in _STRING_OR_COMMENT.finditer(text):
        if match[0].startswith("#"):
            yield match.start(), match[0]
