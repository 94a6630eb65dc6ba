"""Where a block holds any of many words: one automaton, of which words that are everywhere take leave for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

Found: TypeAlias = tuple[int, int, int]
"""A word by its index, and where it begins and ends."""

EDGE = 48
"""Of a word that a block holds more often than twice this, only so many of the first and of the last places count."""
LATER = 12
"""The same for a word that was as frequent before."""
LONG = 6 << 20
"""Bytes from which on an automaton pays that takes longer to build and reads faster."""
KEPT = 8
"""Automata that are kept, each without other words."""


class Words:
    """Finds lower-case words in blocks of lower-case bytes, in time that does not grow with how often they occur."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.encode() for word in words]
        self._spent: set[int] = set()
        self._frequent: set[int] = set()
        self._automata: dict[frozenset[int], tuple[BytesAhoCorasick, list[int]]] = {}
        self._read = 0

    def spend(self, index: int) -> None:
        """A word that is not looked for any more."""
        self._spent.add(index)
        self._frequent.discard(index)

    def find(self, lowered: bytes) -> list[Found]:
        """Places in the order in which they end, or begin where some words are frequent."""
        automaton, left = self._automaton()
        self._read += len(lowered)
        if self._read > LONG > self._read - len(lowered):
            self._automata.clear()
        found: list[Found] = automaton.find_matches_as_indexes(lowered, overlapping=True)
        frequent = self._crowded(found, left)
        if len(left) < len(self._words):
            found = [(left[word], start, end) for word, start, end in found]
        if not frequent and not self._frequent:
            return found
        if frequent:
            found = [one for one in found if one[0] not in frequent]
        for word in tuple(self._frequent):
            places = self._edges(lowered, word, LATER)
            if len(places) < 2 * LATER:
                self._frequent.discard(word)
            found += places
        for word in frequent:
            found += self._edges(lowered, word, EDGE)
        self._frequent |= frequent
        found.sort(key=itemgetter(1))
        return found

    def _crowded(self, found: Sequence[Found], left: Sequence[int]) -> set[int]:
        if len(found) <= 2 * EDGE:
            return set()
        return {left[word] for word, count in Counter(map(itemgetter(0), found)).items() if count > 2 * EDGE}

    def _automaton(self) -> tuple[BytesAhoCorasick, list[int]]:
        without = frozenset(self._spent | self._frequent)
        if without not in self._automata:
            from ahocorasick_rs import BytesAhoCorasick, Implementation

            if len(self._automata) >= KEPT:
                self._automata.pop(next(iter(self._automata)))
            left = [index for index in range(len(self._words)) if index not in without]
            words = [self._words[index] for index in left]
            form = Implementation.DFA if self._read > LONG else Implementation.ContiguousNFA
            self._automata[without] = BytesAhoCorasick(words, implementation=form), left
        return self._automata[without]

    def _edges(self, lowered: bytes, word: int, most: int) -> list[Found]:
        """The first places of a word and the last ones, in order."""
        sign = self._words[word]
        first: list[int] = []
        at = lowered.find(sign)
        while at >= 0 and len(first) < most:
            first.append(at)
            at = lowered.find(sign, at + len(sign))
        last: list[int] = []
        end = len(lowered)
        least = first[-1] + len(sign) if first else 0
        while len(last) < most and (at := lowered.rfind(sign, least, end)) >= 0:
            last.append(at)
            end = at
        return [(word, at, at + len(sign)) for at in (*first, *reversed(last))]
