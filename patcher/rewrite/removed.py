"""Code that was commented out: by a hand, or by an earlier run whose record only takes something away.

# log(request,  # Uky               read as `log(request, verbose=True)`: for a record that replaces `log($$$)` by
#     verbose=True)  # Uky          nothing, it is done already
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patcher.rewrite.matching import find
from patcher.rewrite.source import Source, parse

if TYPE_CHECKING:
    from patcher.rewrite.pattern import Pattern
    from patcher.rewrite.syntax import Scope

_COMMENT = re.compile(r"^([ \t]*)# ?(.*)$")
_LONGEST = 40
"""The most comment lines that are read together as one statement. A guess: calls in verl have up to some 30 lines."""


def commented_out(
    source: Source, scopes: Sequence[Scope], pattern: Pattern, markers: re.Pattern[str]
) -> tuple[tuple[int, int], ...]:
    """The first and last lines of comments that, read as code, are what a pattern matches."""
    found: list[tuple[int, int]] = []
    for scope in scopes:
        number, last = source.lines(scope)
        while number <= last:
            length = _matching(source, number, pattern, markers)
            if length:
                found.append((number, number + length - 1))
            number += length or 1
    return tuple(found)


def _matching(source: Source, first: int, pattern: Pattern, markers: re.Pattern[str]) -> int:
    """How many comment lines from `first` on are what the pattern matches, or 0."""
    lines: list[str] = []
    base = 0
    marked = bool(markers.search(source.line(first)))
    for number in range(first, min(first + _LONGEST, len(source.starts) + 1)):
        comment = _COMMENT.match(source.line(number))
        if marked and (comment or not source.line(number).strip()) and not markers.search(source.line(number)):
            continue
        if comment is None:
            return 0
        indent = comment[1] if lines else ""
        base = base if lines else len(comment[1])
        lines.append(indent[base:] + markers.sub("", comment[2]).rstrip())
        text = "\n".join(lines)
        read = parse(text) if all(name in text for name in pattern.names) else None
        if isinstance(read, Source) and find(read, (read.module,), pattern):
            return number - first + 1
    return 0
