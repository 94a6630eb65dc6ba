"""The markers that say which lines were changed, and by which record."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from patcher.rewrite.code import EOL, Code, parse


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


def line_markers(line: str, word: str) -> list[str | None]:
    """The record ids, or None for a marker without one, that one line carries."""
    found: list[str | None] = []
    for match in marker_pattern(word).finditer(line):
        ids = [part.strip() for part in (match[1] or "").split(",") if part.strip()]
        found += ids or [None]
    return found


def markers(source: str, word: str) -> tuple[Marker, ...]:
    """Every marker in a source, in order. In what is Python only comments count; elsewhere anything behind a `#`."""
    if word.casefold() not in source.casefold() or not marker_pattern(word).search(source):
        return ()
    text = source.removeprefix("\ufeff")
    code = parse(text)
    hidden = _string_markers(code, word) if isinstance(code, Code) else frozenset()
    found: list[Marker] = []
    start = 0
    for number, line in enumerate(EOL.split(text), 1):
        start = code.line_start(number) if isinstance(code, Code) else start
        for match in marker_pattern(word).finditer(line):
            if start + match.start() in hidden:
                continue
            alone = line.lstrip(" \t\f").startswith("#")
            ids = [part.strip() for part in (match[1] or "").split(",") if part.strip()]
            found += [Marker(number, record, alone) for record in (ids or [None])]
    return tuple(found)


def _string_markers(code: Code, word: str) -> frozenset[int]:
    """The offsets of what looks like a marker and stands in a string."""
    offsets = [match.start() for match in marker_pattern(word).finditer(code.text)]
    strings = [
        (code.start(node), code.end(node))
        for node in code.parents
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))
    ]
    hidden: set[int] = set()
    for start, end in strings:
        inside = [offset for offset in offsets if start < offset < end]
        if inside:
            hidden |= _not_comments(code, start, end, inside)
    return frozenset(hidden)


def _not_comments(code: Code, start: int, end: int, inside: list[int]) -> set[int]:
    """Of the offsets in a string that may be written in several parts, those that are no comment between parts."""
    from patcher.rewrite.shape import shape

    lines = EOL.split(code.text[start:end])
    first = code.line_of(start)
    comments = shape(["(" + lines[0], *lines[1:-1], lines[-1] + ")"] if len(lines) > 1 else [f"({lines[0]})"]).comments
    shown = set()
    for index, column in enumerate(comments):
        if column is not None:
            shown.add((first + index, column + (start - code.line_start(first) - 1 if index == 0 else 0)))
    hidden = set()
    for offset in inside:
        number = code.line_of(offset)
        column = offset - code.line_start(number)
        if not any(line == number and begin <= column for line, begin in shown):
            hidden.add(offset)
    return hidden
