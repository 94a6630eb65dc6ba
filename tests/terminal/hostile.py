"""Text that steers a terminal, and what may arrive there instead."""

from __future__ import annotations

import io
import re
import unicodedata

from hypothesis import strategies as st

ATTACKS = (
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;Y3VybA==\x07",
    "\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[31mred",
    "\x1b[8mhidden",
    "\x1bP$q\x1b\\",
    "\x1bc",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\r\x1b[K",
    "\b\b\b",
    "\x7f",
    "\x85",
    "\u202etxt.exe",
    "\u2066\u2069",
    "\u200b\u200f\ufeff",
    "\u2028\u2029",
    "\U000e0041",
    "\udcff\ud800",
    "\x00",
    "\x0b\x0c",
    "[red]x[/red]",
    "[link=http://example.org]x[/link]",
    "{0.__class__}{x!r:>9}",
    "%s%n",
    "\nerror: nothing is wrong",
    "\t",
)
PARTS = st.one_of(st.sampled_from(ATTACKS), st.characters(), st.text(max_size=5), st.sampled_from("\x1b\x9b[];mK0123"))
TEXTS = st.lists(PARTS, max_size=8).map("".join)
STYLING = re.compile(r"\r\x1b\[K|\x1b\[[\d;]*m")
"""What the tool itself sends."""
_PLAIN_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Of category Cf, but drawn, and of no effect on other text."""


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def steering(text: str, *, own: bool = True) -> list[str]:
    """Each character that a terminal would obey rather than show, the tool's own styling aside."""
    rest = STYLING.sub("", text) if own else text
    return [
        char
        for char in rest
        if char not in "\n\t"
        and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in _PLAIN_FORMATS)
    ]
