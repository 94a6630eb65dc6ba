"""One hunk of a unified diff: its lines before and after. Read with the records, so without libcst."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from patcher.i18n import phrase


@dataclass(frozen=True, slots=True)
class Sides:
    """The lines of a hunk before and after it, and how many lines of context it begins and ends with."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    head: int
    tail: int


@lru_cache(maxsize=512)
def sides(hunk: str) -> Sides:
    """Read a hunk. Raises ValueError, with a plain message, for a text that is none."""
    lines = hunk.replace("\r\n", "\n").removesuffix("\n").split("\n")
    signs = [line[:1] or " " for line in lines]
    for number, sign in enumerate(signs, start=1):
        if sign not in " +-":
            raise ValueError(phrase("line {number} of the hunk must begin with a space, + or -", number=number))
    if not {"+", "-"} & set(signs):
        raise ValueError(phrase("has no line that begins with + or -"))
    texts = [line[1:] for line in lines]
    old = tuple(text for sign, text in zip(signs, texts, strict=True) if sign != "+")
    new = tuple(text for sign, text in zip(signs, texts, strict=True) if sign != "-")
    if not any(line.strip() for line in old):
        raise ValueError(phrase("has no line of context and none that goes, so that its place is not known"))
    changed = [index for index, sign in enumerate(signs) if sign != " "]
    return Sides(old, new, changed[0], len(signs) - 1 - changed[-1])


def check_hunk(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no hunk."""
    sides(text)
