"""A module's text without the bodies of the functions and classes at its left margin.

What a module binds stands outside of these bodies, and most of a package's text within them. Parsing what is left takes
a fifth of the time. A body is parsed by itself once something is asked of it.

    class Engine(Base):             class Engine(Base):
        '''Serves.'''           ▶
        def run(self): ...              0
    LIMIT = 3                       LIMIT = 3
"""

from __future__ import annotations

import re
from itertools import pairwise

_AT_MARGIN = re.compile(rb"^[^\s#)\]}]", re.MULTILINE)
"""Where a statement begins: neither a comment nor the end of brackets: `def f(` … `) -> int:`."""
_DEFINES = re.compile(rb"(?:async def|def|class)\b")
_QUOTES = (b'"""', b"'''")
_UNUSUAL = re.compile(rb"[\r\f\0]|\A(?:[^\n]*\n)?[ \t]*#[^\n]*coding[:=][ \t]*(?!(?i:utf-?8))")
"""Other ends of lines, and texts that are not UTF-8."""


def without_bodies(text: bytes) -> bytes:
    """The text with `0` in place of each body, on the body's last line, so that all lines keep their numbers.

    Where a quotation may reach over the left margin, and in other texts whose bodies are not sure, it stays as it is.
    """
    if _UNUSUAL.search(text):
        return text
    begins = [found.start() for found in _AT_MARGIN.finditer(text)]
    parts = []
    done = read = 0
    for begin, end in pairwise([*begins, len(text)]):
        if not _DEFINES.match(text, begin):
            continue
        # `TEMPLATE = """` above, and the line within it: `def {name}():`
        if _is_quoted(text, read, begin):
            return text
        read, body = begin, _end_of_header(text, begin, end)
        # The text that a function writes goes on at the left margin, so that this is not the end of its body.
        if body and _is_quoted(text, body, end):
            return text
        last = _without_comments(text[body:end]) if body else b""
        if last:
            parts += [text[done:body], b"\n" * last.count(b"\n"), b" 0"]
            done = body + len(last)
    return b"".join([*parts, text[done:]])


def _is_quoted(text: bytes, begin: int, end: int) -> bool:
    """Whether a quotation of several lines begins in this part and ends behind it, as far as their number tells."""
    return any(text.count(quotes, begin, end) % 2 for quotes in _QUOTES)


def _end_of_header(text: bytes, begin: int, end: int) -> int:
    """Where the body begins, below the line that ends in a colon outside of brackets; 0 where that is not sure."""
    depth = 0
    while (stop := text.find(b"\n", begin, end)) >= 0:
        line = text[begin:stop].partition(b"#")[0]
        depth += sum(map(line.count, (b"(", b"[", b"{"))) - sum(map(line.count, (b")", b"]", b"}")))
        if depth < 0:
            return 0
        if not depth and line.rstrip().endswith(b":"):
            return stop + 1
        begin = stop + 1
    return 0


def _without_comments(body: bytes) -> bytes:
    """The body without what is behind its last statement."""
    body = body.rstrip()
    while body and body[body.rfind(b"\n") + 1 :].lstrip().startswith(b"#"):
        body = body[: body.rfind(b"\n") + 1].rstrip()
    return body
