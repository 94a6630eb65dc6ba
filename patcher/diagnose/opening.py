"""A log opened for reading, packed or not, with one error for whatever bars the way."""

from __future__ import annotations

import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from patcher.diagnose.cleaning import is_wide
from patcher.errors import UsageError
from patcher.i18n import listed, phrase
from patcher.worktree.files import open_stream

STANDARD_INPUT = "-"
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_HEAD = 1 << 12
_ODD = frozenset((*range(1, 7), *range(14, 27), *range(28, 32)))
"""Control characters that no log has."""
_FEW = 0.05
"""The share of them from which on a file is no text."""


class NoTextError(UsageError):
    """A file is binary, so that it is no log."""


class Log:
    """What a log holds, up to where it ended when it was opened. Raises UsageError where it cannot be read on."""

    def __init__(self, name: str, stream: BinaryIO, most: int | None) -> None:
        self._name = name
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        self._left = most
        self._seen = False

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""
        if self._left is not None:
            count = min(count, self._left)
        try:
            piece = self._read(count)
        except EOFError:
            return b""
        except (OSError, lzma.LZMAError, zlib.error, ValueError) as error:
            raise unreadable(self._name, error) from error
        if self._left is not None:
            self._left -= len(piece)
        if not self._seen and not _is_text(piece[:_HEAD]):
            raise NoTextError(
                phrase("{path} is no log", path=self._name),
                cause="it is no text, but a binary file",
                advice="LOG is a text file, a packed one (gz, xz, zst), a folder, or - for standard input.",
            )
        self._seen = True
        return piece


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """The log of this name; `-` is standard input. Raises UsageError."""
    if name == STANDARD_INPUT:
        yield cast("BinaryIO", Log(name, sys.stdin.buffer, None))
        return
    path = Path(name)
    try:
        with os.fdopen(open_stream(path), "rb") as stream:
            told = os.fstat(stream.fileno())
            plain = stat.S_ISREG(told.st_mode)
            unpacked = _unpacked(stream, path) if plain else stream
            most = told.st_size if unpacked is stream and plain else None
            yield cast("BinaryIO", Log(name, unpacked, most))
    except FileNotFoundError as error:
        raise UsageError(phrase("there is no log at {path}", path=path)) from error
    except OSError as error:
        raise unreadable(name, error) from error


def is_packed(path: Path) -> bool:
    """Whether a regular file is packed, by how it begins. Raises UsageError where it cannot be read."""
    try:
        with os.fdopen(open_stream(path), "rb") as stream:
            return stream.read(len(_XZ)).startswith((_GZIP, _XZ, _ZSTD))
    except OSError as error:
        raise unreadable(str(path), error) from error


def unreadable(name: str, error: Exception) -> UsageError:
    """The one error for a log that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(phrase("cannot read {path}", path=name), cause=listed(reason))


def _is_text(head: bytes) -> bool:
    solid = head.replace(b"\x00", b"")
    return is_wide(head) or sum(byte in _ODD for byte in solid) <= _FEW * len(solid)


def _unpacked(stream: BinaryIO, path: Path) -> BinaryIO:
    """What a packed file holds, by how it begins; any other file itself."""
    head = stream.read(len(_XZ))
    stream.seek(0)
    if head.startswith(_GZIP):
        import gzip

        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if head.startswith(_XZ):
        return cast("BinaryIO", lzma.LZMAFile(stream))
    return _zstd(stream, path) if head.startswith(_ZSTD) else stream


def _zstd(stream: BinaryIO, path: Path) -> BinaryIO:
    """Through Python's own module where there is one (3.14), else through the package zstandard."""
    from importlib import import_module

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
