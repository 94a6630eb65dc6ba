"""Where a key stands in a TOML text. tomllib tells no positions; messages to people need them."""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*=""")
_QUOTES = ("'''", '"""')


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map each key and table of `text` to its line, counted from 1. `[[edit]]` tables carry their index."""
    found: dict[KeyPath, int] = {}
    arrays: dict[str, int] = {}
    table: KeyPath = ()
    closing: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if closing is not None:
            if closing in line:
                closing = None
            continue
        if header := _TABLE.match(line):
            name = header[2]
            if header[1] == "[[":
                arrays[name] = arrays.get(name, -1) + 1
                table = (name, arrays[name])
            else:
                table = tuple(_unquote(part) for part in name.split("."))
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, _unquote(key[1])), number)
            closing = _opened(line[key.end() :])
    return found


def _opened(value: str) -> str | None:
    for quote in _QUOTES:
        if value.lstrip().startswith(quote) and value.count(quote) == 1:
            return quote
    return None


def _unquote(key: str) -> str:
    return key.strip().strip("\"'")
