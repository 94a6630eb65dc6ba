"""TOML text -> dict, and the line that each key stands on.

tomllib tells no positions, and messages to people need them, so `key_lines` looks for the keys once more.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from patcher.i18n import listed, phrase
from patcher.tables.mistakes import KeyPath, Mistake

LIMIT = 512 * 1024
"""Characters that a file may have; the largest shipped record has a tenth of it."""

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*=""")
_QUOTES = ("'''", '"""')


def decode(text: str, path: Path) -> dict[str, Any] | Mistake:
    """The tables of `text`, or the one mistake that says why it is no TOML. `path` names it in messages."""
    if len(text) > LIMIT:
        large = "is too large: {count} {count:character|characters}, at most {most} are read"
        return Mistake(str(path), 0, "", phrase(large, count=f"{len(text):,}", most=f"{LIMIT:,}"))
    # Here, as who only checks a table that was given, and most often has none to read, does without its patterns.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: dict[str, Any] = tomllib.loads(text)
        return data
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        reason = re.sub(r" \(at .*\)$", "", str(error))
        return Mistake(
            str(path), int(place[1]) if place else 0, "", phrase("is no TOML: {reason}", reason=listed(reason))
        )
    except RecursionError:
        return Mistake(str(path), 0, "", "is nested too deeply")
    except ValueError as error:
        return Mistake(str(path), 0, "", phrase("is no TOML: {reason}", reason=error))


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
