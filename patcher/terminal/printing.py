"""Standard output and standard error: without secrets, and only this tool steers the terminal.

A stream that is guarded sends the sequences that this tool has signed and has all others written out, see `visible`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TextIO

from patcher.i18n import Phrase, Phrases, language
from patcher.terminal.sequences import CLEAR, SEQUENCE, SIGNATURE, SIGNED, as_taken
from patcher.visible import unbroken, visible

_OF_LOGS = re.compile(r"\x1b\[((?:(?:[01234]|2[234]|[34][0-79]|9[0-7]|10[0-7]|[34]8;5;\d{1,3});?)*m)")
"""Colours, bold, dim, italic, underlined, but neither hidden nor blinking text."""
_WITHOUT_UTF_8 = str.maketrans(
    {"·": "|", "▸": ">", "–": "-", "—": "-", "…": "...", "→": "->", "×": "x", "≥": ">=", "≤": "<=", "“": '"', "”": '"'}
)


class Guarded:
    """A text stream without secrets and with control characters written out; the tool's own go to a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.inner = stream

    def write(self, text: str | bytes) -> int:
        from patcher.secrets.redacting import here

        end_passing()
        # click 8.5 writes what it offers to a shell as bytes, to a stream without a `buffer` directly.
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        self.inner.write(self._shown(here().document(shown)))
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
        parts = SIGNED.split(text)
        parts[::2] = map(visible, parts[::2])
        parts[1::2] = [as_taken(code) if at_terminal else "" for code in parts[1::2]]
        return "".join(parts)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Guard standard output and standard error for as long as this lasts."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (guard(stream) for stream in before)
    try:
        yield
    finally:
        end_passing()
        sys.stdout, sys.stderr = before


_NOTICES: ContextVar[list[str] | None] = ContextVar("notices", default=None)


@contextlib.contextmanager
def silent() -> Iterator[list[str]]:
    """Print nothing meanwhile; what would have gone to standard error is put into the list."""
    notices: list[str] = []
    token = _NOTICES.set(notices)
    try:
        yield notices
    finally:
        _NOTICES.reset(token)


def is_silent() -> bool:
    """Whether nothing is printed now: see `silent`."""
    return _NOTICES.get() is not None


def say(*texts: Phrase | Phrases | str, err: bool = False) -> None:
    """Print a line for each text, wrapped to the width of a terminal; a phrase in the reader's language.

    A newline in one of them is written out: a name that holds one cannot make up a line of its own.
    """
    lines = [text if isinstance(text, str) else text.render(language()) for text in texts]
    if (notices := _NOTICES.get()) is not None:
        notices.extend(lines if err else ())
        return
    stream = guard(sys.stderr if err else sys.stdout)
    if stream is None:
        return
    if columns := room(stream):
        from patcher.terminal.layout import wrapped

        lines = [part for line in lines for part in wrapped(settled(line, stream), columns)]
    stream.write("\n".join(map(unbroken, lines)) + "\n")
    stream.flush()


def room(stream: TextIO) -> int:
    """The columns of a terminal, 0 for anything else."""
    if not stream.isatty():
        return 0
    with contextlib.suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", "0"))) > 0:
            return columns
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def terminal_columns() -> int:
    """The columns of the terminal that standard output is, 0 where it is a file or pipe."""
    return room(sys.stdout)


def settled(line: str, stream: TextIO) -> str:
    """A line as it will be shown, so that it can be measured: without secrets, controls written out, in few signs.

    A secret is found in the whole line alone; broken over two it would be shown.
    """
    from patcher.secrets.redacting import here

    parts = SEQUENCE.split(here().text(line))
    parts[::2] = [unbroken(visible(part)) for part in parts[::2]]
    text = "".join(parts)
    return text.translate(_WITHOUT_UTF_8) if stream.isatty() and _knows_ascii_alone() else text


def _knows_ascii_alone() -> bool:
    """Whether the locale is C. Names are shown as they are all the same, for most such terminals know UTF-8."""
    found = [os.environ.get("LC_ALL"), os.environ.get("LC_CTYPE"), os.environ.get("LANG")]
    if found[1] in ("C.UTF-8", "C.utf8", "UTF-8"):  # Python itself sets it where the locale is C (PEP 538).
        found[1] = None
    return next(filter(None, found), "C") in ("C", "POSIX")


_passing: list[TextIO] = []
"""The stream that shows a line that passes, if one does."""


def show_passing(text: str, stream: TextIO | None = None) -> None:
    """Show a line on a terminal, standard error, until anything else is written or the command ends."""
    from patcher.terminal.layout import shortened

    stream = guard(stream or sys.stderr)
    _passing.clear()
    stream.write(f"{CLEAR}{shortened(settled(text, stream), room(stream) - 1)}")
    stream.flush()
    _passing.append(stream)


def end_passing() -> None:
    """Clear the line that passes, if there is one."""
    if _passing:
        stream = _passing.pop()
        with contextlib.suppress(OSError, ValueError):
            stream.write(CLEAR)
            stream.flush()


def show_job_log(text: str) -> None:
    """Somebody's log to standard output: as it is into a file or pipe, in its colours alone on a terminal."""
    if not sys.stdout.isatty():
        show_exactly(text)
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    coloured = _OF_LOGS.sub(lambda found: SIGNATURE + found[1], lines)
    sys.stdout.write(coloured if coloured == lines else f"{coloured}{SIGNATURE}0m")
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
