"""Phrases for people, in English and Chinese. Programs (JSON, logs) always get the English."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from patcher.messages import numbered
from patcher.visible import visible_line

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence with named gaps, translated when it is shown. `str()` is the English.

    `{count} {count:file|files}` chooses the word by the number.
    """

    template: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return numbered(self.template, self.fields).format_map(self.fields)

    def __bool__(self) -> bool:
        return bool(self.template)

    def render(self, language: Language) -> str:
        """The sentence in `language`, to be read by people; English where the catalogue has no translation.

        Of the fields, only phrases are translated: a plain text may be a name. It stays on one line, as what somebody
        called a file may hold a newline and a sentence of its own.
        """
        fields = {
            name: show(value, language) if isinstance(value, Phrase | Phrases) else _Line(value)
            for name, value in self.fields.items()
        }
        template = self.template if language == "en" else _catalogue().get(self.template, self.template)
        return numbered(template, self.fields).format_map(fields)


class _Line:
    """A value that is formatted as it is, and then shown on one line."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __format__(self, spec: str) -> str:
        return visible_line(format(self._value, spec))

    def __str__(self) -> str:
        return visible_line(str(self._value))

    def __repr__(self) -> str:
        return visible_line(repr(self._value))


def phrase(template: str, **fields: Any) -> Phrase:
    return Phrase(template, fields)


def listed(text: str) -> Phrases:
    """Somebody else's sentence, such as the operating system's, in Chinese where the catalogue lists it."""
    return Phrases((text,))


def show(value: object, language: Language) -> str:
    """A phrase in `language`; plain text through the catalogue; anything else as it is."""
    if isinstance(value, Phrase):
        return value.render(language)
    if isinstance(value, Phrases):
        return value.render(language)
    if isinstance(value, str) and language == "zh":
        return _catalogue().get(value, value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Phrases:
    """Several phrases in a row."""

    parts: tuple[Phrase | Phrases | str, ...]
    separator: str = "; "

    def __str__(self) -> str:
        return self.separator.join(str(part) for part in self.parts if part)

    def __bool__(self) -> bool:
        return any(self.parts)

    def render(self, language: Language) -> str:
        return show(self.separator, language).join(show(part, language) for part in self.parts if part)


NOTHING = Phrases(())


def language() -> Language:
    """The reader's language, decided as GNU gettext does; Simplified Chinese for every locale of Chinese.

    The first of LC_ALL, LC_MESSAGES and LANG that is set counts. If it is the locale C or POSIX, or none is set, it is
    English; else the first language of LANGUAGE that there is comes before it: `LANGUAGE=fr:zh_CN LANG=en_US.UTF-8`.
    """
    locale = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "C")
    if re.split("[.@]", locale)[0] in ("C", "POSIX"):
        return "en"
    for name in (*os.environ.get("LANGUAGE", "").split(":"), locale):
        match re.split("[_.@]", name.lower())[0]:
            case "zh" | "en" as found:
                return found
    return "en"


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, str]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    found: dict[str, str] = {}
    for path in sorted(Path(__file__).with_name("zh").glob("*.toml")):
        found |= tomllib.loads(path.read_text(encoding="utf-8"))
    return found
