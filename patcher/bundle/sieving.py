"""A faster way to find what gives secrets away, for logs of any size; hosts have the standard library alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ahocorasick_rs import AhoCorasick, MatchKind

from patcher.secrets.stretches import SIGNS
from patcher.secrets.values import Span


def find(small: str) -> Iterator[Span]:
    """Where the signs stand in a text of small letters."""
    return ((start, end) for _, start, end in _automaton().find_matches_as_indexes(small))


@lru_cache(maxsize=1)
def _automaton() -> AhoCorasick:
    return AhoCorasick(SIGNS, matchkind=MatchKind.LeftmostLongest)
