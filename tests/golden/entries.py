"""What is kept of an output: a line with hashes for each, and some in full."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_DIGITS = 12
"""Of a hash, in hexadecimal: 48 bits tell some thousand outputs apart."""
_LONGEST = 150
"""Characters of a file's name before it is cut; file systems allow 255 bytes."""


@dataclass(frozen=True)
class Entry:
    """The outputs of one call, by name: `json`, `en`, `zh`, or `texts`."""

    key: str
    values: Mapping[str, str]
    shown: str = ""
    """What the line shows as it is, beside the hashes: an exit code, a verdict, counts."""
    in_full: frozenset[str] = field(default=frozenset())
    """Names of the values that are committed in full too."""

    @property
    def line(self) -> str:
        hashes = " ".join(f"{name}={hashed(value)}" for name, value in self.values.items())
        return f"{self.key}  |  {hashes}  |  {self.shown}".rstrip()


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def as_text(value: Any) -> str:
    """JSON in one form, whatever the order of its keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def file_name(key: str, name: str) -> str:
    """A file's name for a value. Two keys that differ only in signs get two names."""
    plain = re.sub(r"[^\w.=+-]+", "_", key).strip("_")
    if plain != key.replace(" ", "_") or len(plain) > _LONGEST:
        plain = f"{plain[:_LONGEST]}-{hashed(key)[:6]}"
    return f"{plain}.{name}.txt"


def write_in_full(folder: Path, entries: Iterable[Entry]) -> None:
    """Write every value to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        for name, value in entry.values.items():
            (folder / file_name(entry.key, name)).write_text(value, encoding="utf-8", errors="surrogateescape")


def samples(entries: Iterable[Entry]) -> dict[str, str]:
    """The values that are committed in full, by the name of their file."""
    return {
        file_name(entry.key, name): value
        for entry in entries
        for name, value in entry.values.items()
        if name in entry.in_full
    }
