"""A log in blocks of whole lines, read from files and standard input in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from patcher.diagnose.cleaning import Utf8, clean

SIZE = 1 << 21
"""Bytes of a block."""
AROUND = 1 << 16
"""Bytes before and behind a line that its neighbours are looked for in."""
LONG = 1 << 12
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

        Of a line longer than `LONG` only a part around `at`, between words.
        """
        content = self.content
        low = max(0, at - LONG)
        begin = max(content.rfind(b"\n", low, at), content.rfind(b"\r", low, at)) + 1
        if begin == 0 and low > 0:
            begin = content.rfind(b" ", low, at) + 1 or low
            begin = max(begin, content.find(b" ", at - (LONG >> 2), at) + 1)
        high = begin + LONG
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
        return _texts(self.content[begin:at].removesuffix(b"\n")) if begin < at else []

    def behind(self, at: int, most: int) -> list[str]:
        """The line that begins at `at`, and at most `most` lines behind it."""
        high, end = min(len(self.content), at + AROUND), at
        for _ in range(most + 1):
            found = self.content.find(b"\n", end, high)
            if found < 0:
                return _texts(self.content[at:high].removesuffix(b"\n"))
            end = found + 1
        return _texts(self.content[at : end - 1])


def _texts(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def blocks(stream: BinaryIO | Utf8, offset: int = 0, size: int = SIZE) -> Iterator[Block]:
    """The blocks of one log. A block ends at a line end or, in a line that is longer, between words or anywhere."""
    source = stream if isinstance(stream, Utf8) else Utf8(stream)
    before, ahead = b"", source.read(size + AROUND)
    number = 1
    while ahead:
        own = clean(ahead[: _cut(ahead, size)])
        ahead = ahead[_cut(ahead, size) :]
        block = Block(before + own + ahead[:AROUND], len(before), len(before) + len(own), offset, number)
        yield block
        if block.lines < 0:
            block.lines = own.count(b"\n")
        offset += len(own)
        number += block.lines
        before = (before + own)[-AROUND:] if len(own) < AROUND else own[-AROUND:]
        if len(ahead) < size + AROUND:
            ahead += source.read(size + AROUND - len(ahead))


def _cut(ahead: bytes, size: int) -> int:
    """Where the block ends."""
    if len(ahead) <= size:
        return len(ahead)
    if cut := ahead.rfind(b"\n", 0, size) + 1:
        return cut
    cut = ahead.rfind(b"\r", 0, size) + 1
    if cut and ahead[cut : cut + 1] != b"\n":
        return cut
    return ahead.rfind(b" ", max(0, size - LONG), size) + 1 or size
