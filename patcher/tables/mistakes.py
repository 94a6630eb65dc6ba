"""Gather every mistake of a TOML file instead of stopping at the first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patcher.i18n import Phrase, Phrases, phrase
from patcher.tables.lines import KeyPath, key_lines

_QUOTED = 1000


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in one file. `line` counts from 1; 0 where no line can be named."""

    file: str
    line: int
    key: str
    message: Phrase | Phrases | str

    def __str__(self) -> str:
        return str(self.told)

    @property
    def told(self) -> Phrase:
        """All of it in a sentence."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        template = "{place}: {key}: {message}" if self.key else "{place}: {message}"
        return phrase(template, place=place, key=_short(self.key), message=Phrases((self.message,)))


@dataclass
class Checker:
    """Reads typed values out of a parsed TOML file and notes what does not fit."""

    file: str
    text: str
    mistakes: list[Mistake] = field(default_factory=list)
    _lines: dict[KeyPath, int] | None = None

    def note(self, path: KeyPath, message: Phrase | Phrases | str) -> None:
        if isinstance(message, Phrase):
            fields = message.fields.items()
            message = Phrase(message.template, {n: _short(v) if isinstance(v, str) else v for n, v in fields})
        self.mistakes.append(Mistake(self.file, self.line(path), _dotted(path), message))

    def table(self, value: object, path: KeyPath, allowed: Iterable[str]) -> Mapping[str, Any]:
        """`value` as a table; each key outside `allowed` is a mistake that names the nearest one."""
        if not isinstance(value, dict):
            self.note(path, phrase("must be a table, not {kind}", kind=_kind(value)))
            return {}
        names = tuple(allowed)
        for key in value:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                meant = "unknown key; did you mean {near}? allowed here: {names}"
                template = meant if near else "unknown key; allowed here: {names}"
                self.note((*path, key), phrase(template, near="".join(near), names=", ".join(names)))
        return value

    def tables(self, data: Mapping[str, Any], key: str) -> list[tuple[KeyPath, Any]]:
        value = data.get(key, [])
        if not isinstance(value, list):
            self.note((key,), phrase("must be an array of tables ([[{key}]]), not {kind}", key=key, kind=_kind(value)))
            return []
        return [((key, index), item) for index, item in enumerate(value)]

    def string(self, data: Mapping[str, Any], path: KeyPath, key: str, *, required: bool = True) -> str | None:
        if key not in data:
            if required:
                self.note((*path, key), "is missing")
            return None
        value = data[key]
        if not isinstance(value, str):
            self.note((*path, key), phrase("must be a string, not {kind}", kind=_kind(value)))
            return None
        if required and not value.strip():
            self.note((*path, key), "must not be empty")
            return None
        return value

    def strings(self, data: Mapping[str, Any], path: KeyPath, key: str) -> tuple[str, ...]:
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.note((*path, key), "must be a list of non-empty strings")
            return ()
        return tuple(value)

    def choice(self, data: Mapping[str, Any], path: KeyPath, key: str, allowed: Iterable[str]) -> str | None:
        names = tuple(allowed)
        value = self.string(data, path, key)
        if value is not None and value not in names:
            self.note((*path, key), phrase("{value!r} is none of: {names}", value=value, names=", ".join(names)))
            return None
        return value

    def boolean(self, data: Mapping[str, Any], path: KeyPath, key: str, default: bool) -> bool:
        value = data.get(key, default)
        if not isinstance(value, bool):
            self.note((*path, key), phrase("must be true or false, not {kind}", kind=_kind(value)))
            return default
        return value

    def count(self, data: Mapping[str, Any], path: KeyPath, key: str) -> int:
        value = data.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
            self.note((*path, key), "must be a whole number from 1 to 1000")
            return 1
        return value

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest table around it."""
        if self._lines is None:
            self._lines = key_lines(self.text)
        for length in range(len(path), 0, -1):
            if line := self._lines.get(path[:length]):
                return line
        return 1


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _short(text: str) -> str:
    """A text of the file as a message quotes it: a key may have as many characters as the file."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def _kind(value: object) -> Phrase:
    names = {
        bool: phrase("true or false"),
        int: phrase("a number"),
        float: phrase("a number"),
        str: phrase("a string"),
        list: phrase("a list"),
        dict: phrase("a table"),
    }
    return names.get(type(value), phrase("a date"))
