"""A log's bytes as one text: wide encodings turned into UTF-8, colours taken out of the middle of words."""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 512
"""Bytes that tell a wide encoding without a mark."""

_COLOUR = re.compile(
    rb"\x1b(?<![\n\r]\x1b)"
    rb"(?!(?<=\)\x1b)\[0m )(?!\[32m \[rep)(?!(?<=\]\x1b)\[0m)"
    rb"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])"
)
"""All but those around the names that Ray puts before a line, and around its count behind it: no word is cut there."""


def coloured(content: bytes) -> bool:
    """Whether there is anything that `clean` may take out."""
    return b"\x1b" in content or b"\x00" in content


def clean(content: bytes) -> bytes:
    """Without the colours that may cut a word in two, and without NULs."""
    if b"\x00" in content:
        content = content.replace(b"\x00", b"")
    return _COLOUR.sub(b"", content) if b"\x1b" in content else content


class Utf8:
    """A stream read as UTF-8, whatever byte order its own text has."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ready = b""
        self.size = 0
        """Bytes read from the stream itself."""
        self._start()

    def read(self, count: int) -> bytes:
        """At least `count` bytes; fewer only at the end of the stream."""
        pieces = [self._ready]
        have = len(self._ready)
        while have < count and (piece := self._piece(count - have)) is not None:
            pieces.append(piece)
            have += len(piece)
        self._ready = b""
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]

    def _start(self) -> None:
        head = b""
        while len(head) < _HEAD and (piece := self._stream.read(_HEAD - len(head))):
            head += piece
        self.size = len(head)
        if (encoding := _wide(head)) is not None:
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
            self._ready = self._decoder.decode(head).encode("utf-8", "replace")
        else:
            self._ready = head.removeprefix(codecs.BOM_UTF8)

    def _piece(self, count: int) -> bytes | None:
        piece = self._stream.read(count)
        self.size += len(piece)
        if self._decoder is None:
            return piece or None
        if not piece:
            return None
        return self._decoder.decode(piece).encode("utf-8", "replace")


def is_wide(head: bytes) -> bool:
    """Whether what a log begins with has two or four bytes a character."""
    return _wide(head) is not None


def _wide(head: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    half = len(head) // 2
    if half >= 8 and head.strip(b"\x00") != b"":
        odd, even = head[1::2].count(0), head[0::2].count(0)
        if odd > 0.7 * half and even < 0.1 * half:
            return "utf-16-le"
        if even > 0.7 * half and odd < 0.1 * half:
            return "utf-16-be"
    return None
