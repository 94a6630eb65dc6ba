"""A log in blocks of whole lines, read from files and standard input in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

SIZE = 1 << 22
"""Bytes that are read at a time."""
AROUND = 1 << 16
"""Bytes before and behind a line that its neighbours are looked for in."""


@dataclass(frozen=True, slots=True)
class Block:
    """`content[begin:end]` is this block's own; what is around it was or will be another's.

    `offset` and `number` are the byte and the line, from 1, at which its own part begins.
    """

    content: bytes
    begin: int
    end: int
    offset: int
    number: int


def blocks(stream: BinaryIO, offset: int = 0) -> Iterator[Block]:
    """The blocks of one log. A block ends at a line end, or, in a line longer than `SIZE`, anywhere."""
    before, own = b"", stream.read(SIZE)
    number = 1
    while own:
        following = stream.read(SIZE)
        cut = max(own.rfind(b"\n"), own.rfind(b"\r")) + 1 if following else len(own)
        own, rest = (own[:cut], own[cut:]) if cut else (own, b"")
        ahead = rest + following
        yield Block(before + own + ahead[:AROUND], len(before), len(before) + len(own), offset, number)
        offset += len(own)
        number += own.count(b"\n")
        before, own = own[-AROUND:], ahead
