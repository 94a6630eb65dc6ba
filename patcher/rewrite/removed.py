"""Statements that a hand, or an earlier run, has turned into comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patcher.rewrite.code import Code, Scope, parse
from patcher.rewrite.matching import find

if TYPE_CHECKING:
    from patcher.rewrite.pattern import Pattern

_COMMENT = re.compile(r"^([ \t]*)# ?(.*)$")
_LONGEST = 40


def commented_out(
    code: Code, scopes: Sequence[Scope], pattern: Pattern, markers: re.Pattern[str]
) -> tuple[tuple[int, int], ...]:
    """The first and last lines of comments that, read as code, are what a pattern matches."""
    found: list[tuple[int, int]] = []
    for scope in scopes:
        first, last = (1, len(code.starts)) if scope is code.tree else (scope.lineno, scope.end_lineno)  # type: ignore[union-attr]
        number = first
        while number <= (last or first):
            length = _matching(code, number, pattern, markers)
            if length:
                found.append((number, number + length - 1))
            number += length or 1
    return tuple(found)


def _matching(code: Code, first: int, pattern: Pattern, markers: re.Pattern[str]) -> int:
    """How many comment lines from `first` on are what the pattern matches, or 0."""
    lines: list[str] = []
    base = 0
    marked = bool(markers.search(code.line(first)))
    for number in range(first, min(first + _LONGEST, len(code.starts) + 1)):
        comment = _COMMENT.match(code.line(number))
        if marked and (comment or not code.line(number).strip()) and not markers.search(code.line(number)):
            continue
        if comment is None:
            return 0
        indent = comment[1] if lines else ""
        base = base if lines else len(comment[1])
        lines.append(indent[base:] + markers.sub("", comment[2]).rstrip())
        read = parse("\n".join(lines))
        if isinstance(read, Code) and find(read, (read.tree,), pattern):
            return number - first + 1
    return 0
