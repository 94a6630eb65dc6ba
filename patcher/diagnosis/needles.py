"""The words that a pattern cannot match without: looked for first, so that patterns are tried on few lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_COMMON = ("error", "failed", "exception", "warning", "info", "worker", "traceback")


def needles(pattern: str) -> frozenset[str]:
    """Words, in lower case, of which each text that `pattern` matches holds at least one.

    Raises ValueError for a pattern that can match a text without any word of three letters or more.
    """
    found = _of_sequence(_parser.parse(pattern, re.IGNORECASE))
    if not found or min(map(len, found)) < 3:
        raise ValueError(pattern)
    return found


def _of_sequence(parsed: Any) -> frozenset[str]:
    """The best of what the parts of a sequence require; empty where they require nothing."""
    return max(_required(parsed), key=_worth, default=frozenset())


def _worth(words: frozenset[str]) -> float:
    """Long words are rare; so are a few of them rather than many."""
    if not words:
        return 0.0
    shortest = min(words, key=len)
    return len(shortest) - len(words) * 0.5 - (6 if shortest in _COMMON else 0)


def _required(parsed: Any) -> Iterator[frozenset[str]]:
    run: list[str] = []
    for code, value in parsed:
        if str(code) == "LITERAL" and value < 128:
            run.append(chr(value).lower())
            continue
        if run:
            yield frozenset({"".join(run)})
            run = []
        yield from _inside(str(code), value)
    if run:
        yield frozenset({"".join(run)})


def _inside(code: str, value: Any) -> Iterator[frozenset[str]]:
    match code:
        case "SUBPATTERN":
            yield from _required(value[3])
        case "ATOMIC_GROUP":
            yield from _required(value)
        case "BRANCH":
            branches = [_of_sequence(branch) for branch in value[1]]
            if all(branches):
                yield _union(branches)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] >= 1:
            yield from _required(value[2])


def _union(words: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(word for some in words for word in some)
