"""Text of others as it may be shown: what would steer a terminal, or hide or turn other text round, is written out.

A file name may hold `ESC ]52;c;…` (which sets the clipboard), a branch U+202E (which turns what follows round), a log
`ESC [2J` (which clears the screen), a version a newline and a sentence in our name. None of them reaches a terminal.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # no width, direction, annotations
    "\u2028\u2029"  # further line breaks
    "\ud800-\udfff"  # what was no UTF-8
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # joining, music, tags
    "]"
)
_BREAK = re.compile("[\t\n]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str) -> str:
    r"""`text` with control characters written out, as in `\x1b[2J`; newlines and tabs stay.

    What is no C0 control is written as JSON does (`\u202e`), so that a JSON text stays one, with the same meaning.
    """
    return text if text.isprintable() else _CONTROL.sub(_written, text)


def visible_line(text: str) -> str:
    r"""`text` on one line: newlines and tabs are written out too, as `\n` and `\t`."""
    return text if text.isprintable() else unbroken(visible(text))


def unbroken(text: str) -> str:
    r"""`text` with newlines and tabs alone written out, for what may hold signed sequences."""
    return _BREAK.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    char = found[0]
    if char in _NAMED:
        return _NAMED[char]
    if char < " ":
        return f"\\x{ord(char):02x}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
