"""Read a log, whatever its compression and encoding, as blocks of whole lines in UTF-8.

`open_log` yields the unpacked bytes of a file or of standard input, up to where the file ended when it was opened.
`Utf8Stream` turns UTF-16 and UTF-32 into UTF-8. `blocks` cuts that into blocks: a log of 100 MB has about a million
lines, of which a few hundred matter, so Python must not look at single lines first. `scanner` searches a block for
words, and `Block.bounds` then cuts out the line around each match.

All failures to read become one error, `unreadable`.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from patcher.errors import UsageError
from patcher.i18n import listed, phrase
from patcher.logs.lines import Stripped, strip_prefix
from patcher.worktree.files import open_stream

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODING_HEAD = 512
"""Bytes by which UTF-16 and UTF-32 without a mark are recognised: some lines of a log, and few to wait for at a pipe.
"""

# `\x1b[33mWARN\x1b[0mING` must be found as WARNING. Ray's own colours stay, for no word is cut there:
# `\x1b[36m(WorkerDict pid=1)\x1b[0m text`.
_COLOUR = re.compile(
    rb"\x1b(?<![\n\r]\x1b)"
    rb"(?!(?<=\)\x1b)\[0m )(?!\[32m \[rep)(?!(?<=\]\x1b)\[0m)"
    rb"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])"
)
"""All colours but those around the names that Ray puts before a line, and around the count that it puts behind it."""


def clean(content: bytes) -> bytes:
    """Remove the colours that may split a word, and NULs."""
    if b"\x00" in content:
        content = content.replace(b"\x00", b"")
    return _COLOUR.sub(b"", content) if b"\x1b" in content else content


class Utf8Stream:
    """Reads a stream as UTF-8, whatever its own encoding."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ready = b""
        self.size = 0
        """Bytes read from the underlying stream."""
        self._start()

    def read(self, count: int) -> bytes:
        """Read at least `count` bytes; fewer only at the end of the stream."""
        pieces = [self._ready]
        have = len(self._ready)
        while have < count and (piece := self._piece(count - have)) is not None:
            pieces.append(piece)
            have += len(piece)
        self._ready = b""
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]

    def _start(self) -> None:
        head = b""
        while len(head) < _ENCODING_HEAD and (piece := self._stream.read(_ENCODING_HEAD - len(head))):
            head += piece
        self.size = len(head)
        if (encoding := _wide_encoding(head)) is not None:
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


def _wide_encoding(head: bytes) -> str | None:
    """The encoding of text in UTF-16 or UTF-32; None for any other."""
    # Windows PowerShell's `> train.log` writes UTF-16 with a mark; some redirections lose it. Without one, text of
    # which most characters are ASCII has a zero at every other byte; a binary file has zeros at even and odd places
    # alike. The shares are set by hand: they allow for 30 % other characters.
    for mark, encoding in _BYTE_ORDER_MARKS:
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


STANDARD_INPUT = "-"
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BINARY_HEAD = 1 << 12
"""Bytes by which text is told from binary data: a program or a checkpoint shows itself in its header."""
_BINARY_BYTES = frozenset((*range(1, 7), *range(14, 27), *range(28, 32)))
"""Control characters that no log has. Bell, backspace, escape and white space (7 to 13, 27) do occur in logs."""
_BINARY_SHARE = 0.05
"""The share of such characters above which a file is binary. Set by hand: a log may hold some bytes of a broken
terminal."""


class NoTextError(UsageError):
    """The file holds no text, so it is no log."""


class LogStream:
    """The content of a log up to where it ended when it was opened. Raises UsageError where it cannot be read."""

    def __init__(self, name: str, stream: BinaryIO, most: int | None) -> None:
        self._name = name
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        self._left = most
        self._seen = False
        self.cut_off = False
        """Whether it is an archive whose end is missing; what came before was read."""

    def read(self, count: int) -> bytes:
        """Read at most `count` bytes; none at the end. Raises UsageError."""
        if self._left is not None:
            count = min(count, self._left)
        try:
            piece = self._read(count)
        except EOFError as error:
            self.cut_off = True
            if not self._seen:
                raise NoTextError(
                    phrase("cannot read {path}", path=self._name),
                    cause="the archive is cut off before its first line, or broken",
                ) from error
            return b""
        except (OSError, lzma.LZMAError, zlib.error, ValueError) as error:
            raise unreadable(self._name, error) from error
        if self._left is not None:
            self._left -= len(piece)
        if not self._seen and not _is_text(piece[:_BINARY_HEAD]):
            if self._name == STANDARD_INPUT and piece.startswith((_GZIP, _XZ, _ZSTD)):
                raise NoTextError(
                    phrase("standard input is packed"),
                    advice=phrase("Unpack it on the way: {command}", command="zcat LOG.gz | uky-patch diagnose -"),
                )
            raise NoTextError(
                phrase("{path} is no log", path=self._name),
                cause="it is no text, but a binary file",
                advice="LOG is a text file, a packed one (gz, xz, zst), a folder, or - for standard input.",
            )
        self._seen = True
        return piece


@contextmanager
def open_log(name: str) -> Iterator[BinaryIO]:
    """Open the log of this name for reading; `-` is standard input. Raises UsageError."""
    if name == STANDARD_INPUT:
        yield cast("BinaryIO", LogStream(name, sys.stdin.buffer, None))
        return
    path = Path(name)
    try:
        with os.fdopen(open_stream(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            plain = stat.S_ISREG(status.st_mode)
            unpacked = _unpacked(stream, path) if plain else stream
            most = status.st_size if unpacked is stream and plain else None
            yield cast("BinaryIO", LogStream(name, unpacked, most))
    except FileNotFoundError as error:
        raise UsageError(phrase("there is no log at {path}", path=path)) from error
    except OSError as error:
        raise unreadable(name, error) from error


def is_packed(path: Path) -> bool:
    """Whether a regular file is compressed, by its first bytes. Raises UsageError where it cannot be read."""
    try:
        with os.fdopen(open_stream(path), "rb") as stream:
            return stream.read(len(_XZ)).startswith((_GZIP, _XZ, _ZSTD))
    except OSError as error:
        raise unreadable(str(path), error) from error


def unreadable(name: str, error: Exception) -> UsageError:
    """The error for a log that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(phrase("cannot read {path}", path=name), cause=listed(reason))


def _is_text(head: bytes) -> bool:
    solid = head.replace(b"\x00", b"")
    return _wide_encoding(head) is not None or sum(byte in _BINARY_BYTES for byte in solid) <= _BINARY_SHARE * len(
        solid
    )


def _unpacked(stream: BinaryIO, path: Path) -> BinaryIO:
    """The unpacked content of a file, by its first bytes; a file that is not packed is returned as it is."""
    head = stream.read(len(_XZ))
    stream.seek(0)
    if head.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if head.startswith(_XZ):
        return cast("BinaryIO", lzma.LZMAFile(stream))
    return _zstd(stream, path) if head.startswith(_ZSTD) else stream


def _zstd(stream: BinaryIO, path: Path) -> BinaryIO:
    """Unpack with Python's own module (since 3.14), else with the package zstandard."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        return cast("BinaryIO", module.open(stream, "rb"))
    raise UsageError(
        phrase("cannot read {path}", path=path),
        cause="this Python has no module for zstd",
        advice=phrase("Unpack it on the way: zstd -dc {path} | uky-patch diagnose -", path=path),
    )


BLOCK_SIZE = 1 << 21
"""Bytes of a block. Large enough that the overhead of a block does not matter, and small enough in memory."""
AROUND = 1 << 16
"""Bytes before and after a line in which its neighbours are found: 800 lines of a traceback of 80 bytes each."""
LINE_WINDOW = 1 << 12
"""Bytes of a line that are read at once. Longer lines are dumps of data: `tensor([[0.1, 0.2, …`."""


@dataclass(slots=True)
class Block:
    """A piece of a log. `content[begin:end]` is the block itself; the bytes around it belong to its neighbours.

    `offset` and `number` are the byte and the line, from 1, at which the block begins. Offsets count bytes after the
    colours are removed, so they grow along a log and need not be positions in the file.
    """

    content: bytes
    begin: int
    end: int
    offset: int
    number: int
    lines: int = -1
    """Newlines in the block; -1 until they are counted."""

    def bounds(self, at: int) -> tuple[int, int]:
        """Where the line begins and ends that contains the byte `at`; a state of a progress bar counts as a line.

        Of a line longer than `LINE_WINDOW` only a part around `at`, cut between words.
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
        """At most `most` lines before the line that begins at `at`, in order."""
        low, begin = max(0, at - AROUND), at
        for _ in range(most):
            if begin <= low:
                break
            begin = self.content.rfind(b"\n", low, begin - 1) + 1 or low
        return _decode_lines(self.content[begin:at].removesuffix(b"\n")) if begin < at else []

    def behind(self, at: int, most: int) -> list[str]:
        """The line that begins at `at`, and at most `most` lines after it."""
        high, end = min(len(self.content), at + AROUND), at
        for _ in range(most + 1):
            found = self.content.find(b"\n", end, high)
            if found < 0:
                return _decode_lines(self.content[at:high].removesuffix(b"\n"))
            end = found + 1
        return _decode_lines(self.content[at : end - 1])


def _decode_lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def blocks(stream: BinaryIO | Utf8Stream, offset: int = 0, size: int = BLOCK_SIZE) -> Iterator[Block]:
    """Cut a log into blocks. A block ends after a line; within a line longer than a block, between words or anywhere.

    Args:
        offset: the offset of the first byte.
        size: bytes of a block.
    """
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
    if len(ahead) <= size:
        return len(ahead)
    if cut := ahead.rfind(b"\n", 0, size) + 1:
        return cut
    cut = ahead.rfind(b"\r", 0, size) + 1
    if cut and ahead[cut : cut + 1] != b"\n":
        return cut
    return ahead.rfind(b" ", max(0, size - LINE_WINDOW), size) + 1 or size


_PREFIX = 300
"""Bytes of a line in which its prefixes are: `(WorkerDict pid=7, ip=10.0.0.1) (EngineCore pid=9)`, and colours."""


def line_at(block: Block, begin: int, end: int) -> Stripped:
    """The text from `begin` to `end`, a line or a state of a progress bar, with the prefix of its process taken off.

    A later state of a bar has no prefix of its own; it gets that of its line.
    """
    content = block.content
    line = strip_prefix(content[begin:end].decode("utf-8", "replace"))
    if line.speaker or content[begin - 1 : begin] != b"\r":
        return line
    start = content.rfind(b"\n", max(0, begin - LINE_WINDOW), begin) + 1
    first = strip_prefix(content[start : min(begin, start + _PREFIX)].decode("utf-8", "replace"))
    return Stripped(line.text, first.actors, first.speaker) if first.speaker else line
