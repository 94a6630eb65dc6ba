"""Paths, sizes and long lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.i18n import Phrases, phrase
from patcher.profiles.rendered_file import Text

SHOWN = 5
"""The most things that a sentence names. A guess: more do not fit on a line of a terminal."""


def first_few(parts: Sequence[Text]) -> Phrases:
    """The first five of `parts`, and how many more there are."""
    more = [phrase("and {count} more", count=len(parts) - SHOWN)] if len(parts) > SHOWN else []
    return Phrases((*parts[:SHOWN], *more), ", ")


def first_paths(paths: Sequence[str]) -> Phrases:
    """The first five paths, and how many more there are."""
    return first_few([printable(path) for path in paths])


def printable(path: str) -> str:
    """A path as it can be shown on a terminal: `a\\nb` for a name with a line break."""
    return path if path.isprintable() else ascii(path)[1:-1]


def readable_size(count: int) -> str:
    """Bytes for people: `41.0 MB`, in powers of ten."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
