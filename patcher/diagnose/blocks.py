"""Cut a log into blocks of whole lines, and find where a block holds any of many words.

A log of 100 MB has about a million lines, of which a few hundred matter. So Python never looks at single lines first:
one automaton (Aho-Corasick) searches a block of 2 MB for the words of all patterns, and `Block.bounds` then cuts the
line out around each place that was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from patcher.diagnose.log_stream import Utf8Stream, clean
from patcher.logs.lines import Stripped, strip_prefix

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

SIZE = 1 << 21
"""Bytes of a block."""
AROUND = 1 << 16
"""Bytes before and behind a line that its neighbours are looked for in."""
LINE_WINDOW = 1 << 12
"""Bytes of a line that are looked at at once."""


@dataclass(slots=True)
class Block:
    """`content[begin:end]` is this block's own; what is around it was or will be another's.

    `offset` and `number` are the byte and the line, from 1, at which its own part begins. Offsets count the bytes that
    are left when colours are out, so they grow along a log and need not be those of the file.
    """

    content: bytes
    begin: int
    end: int
    offset: int
    number: int
    lines: int = -1
    """Line ends of its own part; counted by who reads it, or afterwards."""

    def bounds(self, at: int) -> tuple[int, int]:
        """Where the line, or the state of a progress bar, begins and ends that the byte `at` lies in.

        Of a line longer than `LINE_WINDOW` only a part around `at`, between words.
        """
        content = self.content
        low = max(0, at - LINE_WINDOW)
        begin = max(content.rfind(b"\n", low, at), content.rfind(b"\r", low, at)) + 1
        if begin == 0 and low > 0:
            begin = content.rfind(b" ", low, at) + 1 or low
            begin = max(begin, content.find(b" ", at - (LINE_WINDOW >> 2), at) + 1)
        high = begin + LINE_WINDOW
        end = content.find(b"\n", at, high)
        bar = content.find(b"\r", at, end if end >= 0 else high)
        if bar >= 0:
            return begin, bar
        if end >= 0:
            return begin, end
        if high >= len(content):
            return begin, len(content)
        return begin, max(content.rfind(b" ", at + 1, high), at + 1) if b" " in content[at + 1 : high] else high

    def before(self, at: int, most: int) -> list[str]:
        """At most `most` lines before the line that begins at `at`, the last one last."""
        low, begin = max(0, at - AROUND), at
        for _ in range(most):
            if begin <= low:
                break
            begin = self.content.rfind(b"\n", low, begin - 1) + 1 or low
        return _decode_lines(self.content[begin:at].removesuffix(b"\n")) if begin < at else []

    def behind(self, at: int, most: int) -> list[str]:
        """The line that begins at `at`, and at most `most` lines behind it."""
        high, end = min(len(self.content), at + AROUND), at
        for _ in range(most + 1):
            found = self.content.find(b"\n", end, high)
            if found < 0:
                return _decode_lines(self.content[at:high].removesuffix(b"\n"))
            end = found + 1
        return _decode_lines(self.content[at : end - 1])


def _decode_lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def blocks(stream: BinaryIO | Utf8Stream, offset: int = 0, size: int = SIZE) -> Iterator[Block]:
    """The blocks of one log. A block ends at a line end or, in a line that is longer, between words or anywhere."""
    source = stream if isinstance(stream, Utf8Stream) else Utf8Stream(stream)
    before, ahead = b"", source.read(size + AROUND)
    number = 1
    while ahead:
        own = clean(ahead[: _block_end(ahead, size)])
        ahead = ahead[_block_end(ahead, size) :]
        block = Block(before + own + ahead[:AROUND], len(before), len(before) + len(own), offset, number)
        yield block
        if block.lines < 0:
            block.lines = own.count(b"\n")
        offset += len(own)
        number += block.lines
        before = (before + own)[-AROUND:] if len(own) < AROUND else own[-AROUND:]
        if len(ahead) < size + AROUND:
            ahead += source.read(size + AROUND - len(ahead))


def _block_end(ahead: bytes, size: int) -> int:
    """Where the block ends."""
    if len(ahead) <= size:
        return len(ahead)
    if cut := ahead.rfind(b"\n", 0, size) + 1:
        return cut
    cut = ahead.rfind(b"\r", 0, size) + 1
    if cut and ahead[cut : cut + 1] != b"\n":
        return cut
    return ahead.rfind(b" ", max(0, size - LINE_WINDOW), size) + 1 or size


_PREFIX = 300
"""Bytes of a line in which its prefixes stand."""


def line_at(block: Block, begin: int, end: int) -> Stripped:
    """What stands between `begin` and `end`, which is a line or begins behind a carriage return."""
    content = block.content
    line = strip_prefix(content[begin:end].decode("utf-8", "replace"))
    if line.speaker or content[begin - 1 : begin] != b"\r":
        return line
    start = content.rfind(b"\n", max(0, begin - LINE_WINDOW), begin) + 1
    first = strip_prefix(content[start : min(begin, start + _PREFIX)].decode("utf-8", "replace"))
    return Stripped(line.text, first.actors, first.speaker) if first.speaker else line


Found: TypeAlias = tuple[int, int, int]
"""A word by its index, and where it begins and ends."""

# A word such as "step:" may stand in every line of a log of 100 MB, and each place costs a look at its line in Python.
# What matters of such a word is where it comes first and last in a block, so only these places count.
KEPT_AT_EDGE = 48
"""Of a word that a block holds more often than twice this, only so many of the first and of the last places count."""
KEPT_LATER = 12
"""The same for a word that was as frequent before."""
AUTOMATON_BYTES = 6 << 20
"""Bytes from which on an automaton pays that takes longer to build and reads faster."""
KEPT_AUTOMATA = 8
"""Automata that are kept, each without other words."""


class WordFinder:
    """Finds lower-case words in blocks of lower-case bytes, in time that does not grow with how often they occur."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.encode() for word in words]
        self._dropped: set[int] = set()
        self._frequent: set[int] = set()
        self._automata: dict[frozenset[int], tuple[BytesAhoCorasick, list[int]]] = {}
        self._read = 0

    def drop(self, index: int) -> None:
        """A word that is not looked for any more."""
        self._dropped.add(index)
        self._frequent.discard(index)

    def find(self, lowered: bytes) -> list[Found]:
        """Places in the order in which they end, or begin where some words are frequent."""
        automaton, left = self._automaton()
        self._read += len(lowered)
        if self._read > AUTOMATON_BYTES > self._read - len(lowered):
            self._automata.clear()
        found: list[Found] = automaton.find_matches_as_indexes(lowered, overlapping=True)
        frequent = self._words_found_often(found, left)
        if len(left) < len(self._words):
            found = [(left[word], start, end) for word, start, end in found]
        if not frequent and not self._frequent:
            return found
        if frequent:
            found = [one for one in found if one[0] not in frequent]
        for word in tuple(self._frequent):
            places = self._first_and_last_places(lowered, word, KEPT_LATER)
            if len(places) < 2 * KEPT_LATER:
                self._frequent.discard(word)
            found += places
        for word in frequent:
            found += self._first_and_last_places(lowered, word, KEPT_AT_EDGE)
        self._frequent |= frequent
        found.sort(key=itemgetter(1))
        return found

    def _words_found_often(self, found: Sequence[Found], left: Sequence[int]) -> set[int]:
        if len(found) <= 2 * KEPT_AT_EDGE:
            return set()
        return {left[word] for word, count in Counter(map(itemgetter(0), found)).items() if count > 2 * KEPT_AT_EDGE}

    def _automaton(self) -> tuple[BytesAhoCorasick, list[int]]:
        without = frozenset(self._dropped | self._frequent)
        if without not in self._automata:
            from ahocorasick_rs import BytesAhoCorasick, Implementation

            if len(self._automata) >= KEPT_AUTOMATA:
                self._automata.pop(next(iter(self._automata)))
            left = [index for index in range(len(self._words)) if index not in without]
            words = [self._words[index] for index in left]
            form = Implementation.DFA if self._read > AUTOMATON_BYTES else Implementation.ContiguousNFA
            self._automata[without] = BytesAhoCorasick(words, implementation=form), left
        return self._automata[without]

    def _first_and_last_places(self, lowered: bytes, word: int, most: int) -> list[Found]:
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
