"""Standard output and standard error: without secrets, and only this tool steers the terminal.

What the tool itself sends to steer one (colours, the clearing of a progress line) is signed with a number that is new
in each process. A stream that is guarded sends the signed sequences and has all others written out, see `visible`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from patcher.visible import unbroken, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_SIGNATURE = f"\x1b[{int(os.urandom(8).hex(), 16)};"
"""As a sequence would begin, so that click takes it out where it takes out colours."""
_SIGNED = re.compile(re.escape(_SIGNATURE) + r"([\d;]*[mK])")
_COLOUR = re.compile(r"\x1b\[([\d;]*m)")
_OF_LOGS = re.compile(r"\x1b\[((?:(?:[01234]|2[234]|[34][0-79]|9[0-7]|10[0-7]|[34]8;5;\d{1,3});?)*m)")
"""Colours, bold, dim, italic, underlined, but neither hidden nor blinking text."""
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

CLEAR = f"{_SIGNATURE}K"
"""Go to the beginning of the line and clear it."""


class Guarded:
    """A text stream without secrets and with control characters written out; the tool's own go to a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.inner = stream

    def write(self, text: str) -> int:
        from patcher.secrets.redacting import here

        self.inner.write(self._shown(here().document(text)))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "detach", "reconfigure"):  # Ways past `write`; click would take the first.
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _shown(self, text: str) -> str:
        if text.isprintable():
            return text
        at_terminal = self.inner.isatty()
        parts = _SIGNED.split(text)
        parts[::2] = map(visible, parts[::2])
        parts[1::2] = [("\r\x1b[K" if code == "K" else f"\x1b[{code}") if at_terminal else "" for code in parts[1::2]]
        return "".join(parts)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Guard standard output and standard error for as long as this lasts."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (guard(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def style(text: str, fg: str | None = None, *, bold: bool = False) -> str:
    """Text in a colour, or bold, for a guarded stream; plain where that is no terminal."""
    codes = [str(30 + _COLOURS.index(fg))] if fg else []
    codes += ["1"] if bold else []
    return f"{_SIGNATURE}{';'.join(codes)}m{text}{_SIGNATURE}0m" if codes else text


def drawn(table: RenderableType) -> str:
    """What rich makes of it for standard output, for a guarded stream. Its text must be `visible` already."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as capture:
        console.print(table)
    return _COLOUR.sub(lambda found: _SIGNATURE + found[1], capture.get())


def say(*lines: str, err: bool = False) -> None:
    """Print lines. A newline in one of them is written out: a name that holds one cannot make up a line of its own."""
    stream = guard(sys.stderr if err else sys.stdout)
    if stream is not None:
        stream.write("\n".join(map(unbroken, lines)) + "\n")
        stream.flush()


def show_job_log(text: str) -> None:
    """Somebody's log to standard output: as it is into a file or pipe, in its colours alone on a terminal."""
    if not sys.stdout.isatty():
        show_exactly(text)
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    coloured = _OF_LOGS.sub(lambda found: _SIGNATURE + found[1], lines)
    sys.stdout.write(coloured if coloured == lines else f"{coloured}{_SIGNATURE}0m")
    sys.stdout.flush()


def show_exactly(text: str) -> None:
    """Text that is for a file or pipe to standard output, every byte as it is; on a terminal with controls shown."""
    stream = sys.stdout
    if isinstance(stream, Guarded) and not stream.isatty():
        stream = stream.inner
    stream.flush()
    content = getattr(stream, "buffer", None)
    if content is not None and not stream.isatty():
        content.write(text.encode("utf-8", "surrogateescape"))
        content.flush()
    else:
        stream.write(text)
        stream.flush()


def guard(stream: TextIO) -> Any:
    """The stream, guarded; as it is where it is that already, or where there is none."""
    if stream is None or isinstance(stream, Guarded):
        return stream
    if isinstance(stream, io.TextIOWrapper):
        # As click does: a locale that knows ASCII alone says nothing of the terminal.
        plain = stream.encoding.lower() in ("ascii", "ansi_x3.4-1968", "646", "us-ascii")
        stream.reconfigure(encoding="utf-8" if plain else None, errors="backslashreplace")
    return Guarded(stream)
