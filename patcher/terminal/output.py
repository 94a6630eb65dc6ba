"""Standard output and error as they may be: closed, cut, full, in an encoding that lacks most characters.

What the reader of a cut pipe no longer wants (`uky-patch list | head -1`) is dropped, and the command goes on to its
own exit code: a tree is not left half patched because somebody has read enough. Output that cannot be written at all
(`> /dev/full`, `>&-`) is an error of the machine. Standard error can only be tried: nobody could be informed.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

_WORLD = 5


class ReaderGoneError(Exception):
    """Nobody reads standard output any more, and what is being shown has no other end."""


class _Standard(io.FileIO):
    """A standard stream. `cut`: its reader has gone; `lost`: it cannot be written."""

    cut = False
    lost = False

    def write(self, data: Any, /) -> int:
        """Write it, or drop it where nobody reads.

        Raises OutputError, once, where standard output cannot be written.
        """
        size = memoryview(data).nbytes
        if self.cut or self.lost:
            return size
        try:
            while (written := super().write(data)) is None:  # Somebody has made the pipe non-blocking.
                _wait(self.fileno())
        except BrokenPipeError:
            self.cut = True
        except OSError as error:
            self.lost = True
            if self.fileno() == 1:
                raise _unwritable(error) from error
        else:
            return written
        return size


def secure() -> None:
    """Make the standard streams ones that a command can use whatever they were.

    Raises OutputError where standard output is closed: then nothing is begun whose result nobody would see.
    """
    closed = sys.stdout is None
    for number in range(3):  # A file that the command opens must not become its standard output.
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)
    if closed:
        raise _unwritable(OSError("standard output is closed"))


def require_reader() -> None:
    """Raise ReaderGoneError where the reader of standard output has gone: for what would go on without end."""
    stream = getattr(sys.stdout, "inner", sys.stdout)  # The one that `patcher.terminal.printing` guards.
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(raw, _Standard) and raw.cut:
        raise ReaderGoneError


def finish(code: int) -> int:
    """Write out what is left, and give the exit code to end with."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            code = _WORLD if stream is sys.stdout and code in (0, 1) else code
    return code


def _stream(number: int, found: TextIO | None) -> TextIO:
    """The standard stream in the same encoding; what that cannot express is escaped, as `\\u4e2d` in Latin-1."""
    encoding = found.encoding if found is not None else "utf-8"
    raw = _Standard(number, "w", closefd=False)
    at_once = number == 2 or raw.isatty()
    unbuffered = isinstance(found, io.TextIOWrapper) and found.write_through
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=at_once, write_through=unbuffered
    )


def _unwritable(error: OSError) -> Exception:
    from patcher.errors import OutputError
    from patcher.i18n import listed, phrase

    return OutputError(phrase("the output cannot be written"), cause=listed(error.strerror or str(error)))


def _wait(fd: int) -> None:
    import select

    select.select([], [fd], [])
