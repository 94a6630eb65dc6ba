"""A log opened for reading, packed or not, with one error for whatever bars the way."""

from __future__ import annotations

import lzma
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from patcher.errors import UsageError
from patcher.language import listed, phrase

STANDARD_INPUT = "-"
PACKED = (".gz", ".xz", ".zst")
_HEAD = 1 << 13
_TEXT = frozenset((*range(32, 127), *b"\t\n\r\x0b\x0c\x1b\x08\x07\x00", *range(128, 256)))


class Log:
    """What a log holds, up to where it ended when it was opened. Raises UsageError where it cannot be read on."""

    def __init__(self, name: str, stream: BinaryIO, most: int | None) -> None:
        self._name = name
        self._stream = stream
        self._left = most
        self.cut = False
        """Whether a packed log ends before its end."""

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""
        if self._left is not None:
            count = min(count, self._left)
        try:
            piece = self._stream.read(count)
        except EOFError:
            self.cut = True
            return b""
        except (OSError, lzma.LZMAError, zlib.error, ValueError) as error:
            raise unreadable(self._name, error) from error
        if self._left is not None:
            self._left -= len(piece)
        return piece


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """The log of this name; `-` is standard input. Raises UsageError."""
    if name == STANDARD_INPUT:
        yield cast("BinaryIO", Log(name, sys.stdin.buffer, None))
        return
    path = Path(name)
    try:
        told = path.stat()
        stream = _unpacked(path)
    except FileNotFoundError as error:
        raise UsageError(phrase("there is no log at {path}", path=path)) from error
    except OSError as error:
        raise unreadable(name, error) from error
    plain = stat.S_ISREG(told.st_mode) and path.suffix not in PACKED
    with stream as file:
        yield cast("BinaryIO", Log(name, file, told.st_size if plain else None))


def unreadable(name: str, error: Exception) -> UsageError:
    """The one error for a log that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(phrase("cannot read {path}", path=name), cause=listed(reason))


def is_text(head: bytes) -> bool:
    """Whether what a log begins with can be one."""
    return not head or sum(byte in _TEXT for byte in head[:_HEAD]) > 0.9 * len(head[:_HEAD])


def _unpacked(path: Path) -> AbstractContextManager[BinaryIO]:
    import gzip

    match path.suffix:
        case ".gz":
            return cast("AbstractContextManager[BinaryIO]", gzip.open(path, "rb"))
        case ".xz":
            return cast("AbstractContextManager[BinaryIO]", lzma.open(path, "rb"))
        case ".zst":
            return _zstd(path)
        case _:
            return path.open("rb")


def _zstd(path: Path) -> AbstractContextManager[BinaryIO]:
    """Through Python's own module where there is one (3.14), else through the package zstandard."""
    from importlib import import_module

    for name in ("compression.zstd", "zstandard"):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        return cast("AbstractContextManager[BinaryIO]", module.open(path, "rb"))
    raise UsageError(
        phrase("cannot read {path}", path=path),
        cause="this Python has no module for zstd",
        advice=phrase("Unpack it on the way: zstd -dc {path} | uky-patch diagnose -", path=path),
    )
