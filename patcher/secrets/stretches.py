"""Where in a text a secret may stand at all: rules that look closely cost too much for all of a large log."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Tuple

from patcher.secrets import forms, pairs
from patcher.secrets.literals import Pattern, either
from patcher.secrets.names import NEEDLES, PASSWORD, SECRET, rank
from patcher.secrets.providers import STARTS
from patcher.secrets.values import Span, line_end

SIGNS = tuple(sorted(forms.NEEDLES | set(NEEDLES)))
"""What stands in every text that holds a secret, in small letters; the short words of `pairs` apart."""
Find = Callable[[str], Iterable[Tuple[int, int]]]
"""Where the signs stand in a text of small letters."""

_SIGN = Pattern(either(SIGNS))
_NAMES = {sign for sign in SIGNS if any(needle in sign for needle in NEEDLES)}
_STARTS = {start.lower() for start in STARTS} - set(forms.WORDS)
_GIVEN = Pattern(
    r"[\"'\]\\)}>`]{0,20}[ \t]{0,40}(?:[=:|│┃║\t,-]|</?\w)\S{0,3}[^\n]{0,40}[\w\"'|>]|[\"'\\:]{0,20}[ \t]{0,40}\r?\n"
)
"""What follows a name that stands for a secret at times only, where it is given something."""
_NEAR, _FAR, _KEY = 4, 120, 400
"""Lines that belong to one with a sign. A name may stand far above its value: as the head of a table, or of a block."""
_CLOSE = 2000
"""Characters within which of several private keys only the first is looked around for."""
_HEAD = Pattern(r"[\"'\\]{0,20}[ \t]{0,40}[:=][ \t]{0,40}[|>]?[-+]?[ \t]{0,40}(?:#[^\n]{0,200})?\r?\n")
_BESIDE = (",", ";", "\t", "  ")


def find(small: str) -> Iterator[Span]:
    """Where the signs stand, with the standard library alone."""
    return (found.span() for found in _SIGN.finditer(small))


def stretches(text: str, small: str, finder: Find) -> Iterator[Span]:
    """The lines that have to be looked at, in order."""
    begun = until = -1
    key = -_CLOSE
    for start, end, lines in _hits(text, small, finder):
        if end < until - 4000 and (lines != _KEY or until >= len(text)):
            continue
        if lines == _KEY:
            if start - key < _CLOSE:
                continue
            key = start
        first, last = _above(text, start, lines if lines != _FAR else _NEAR), _below(text, end, lines)
        if begun >= 0 and first > until:
            yield begun, until
            begun = -1
        begun, until = (first if begun < 0 else min(begun, first)), max(until, last)
    if begun >= 0:
        yield begun, until


def _hits(text: str, small: str, finder: Find) -> Iterator[tuple[int, int, int]]:
    ranks: dict[str, str] = {}
    done = 0
    for start, end in sorted([*finder(small), *pairs.short_words(text, small)]):
        sign = small[start:end]
        if sign in forms.NEEDLES and _is_form(text, start, sign):
            yield start, end, _KEY if sign[:5] == "-----" else _NEAR
        if sign not in forms.NEEDLES or sign in _NAMES:
            if start < done:
                continue
            start, end = pairs.word_at(text, start, end, done)
            done = end
            word = text[start:end]
            kind = ranks.get(word)
            if kind is None:
                kind = ranks[word] = rank(word)
            if kind in (PASSWORD, SECRET) or (kind and _GIVEN.match(text, end)):
                yield start, end, _lines(text, start, end, word)


def _lines(text: str, start: int, end: int, word: str) -> int:
    if word == "Secret" and "kind" in text[max(0, start - 20) : start]:
        return _KEY
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    beside = before.endswith(_BESIDE) or behind.startswith(_BESIDE)
    return _FAR if _HEAD.match(text, end) or beside or any(bar in text[end : end + 200] for bar in "|│┃║") else _NEAR


def _is_form(text: str, at: int, sign: str) -> bool:
    if sign == "://":
        return forms.is_address(text, at)
    return sign not in _STARTS or forms.is_token(text, at)


def _above(text: str, at: int, lines: int) -> int:
    for _ in range(lines + 1):
        at = text.rfind("\n", 0, max(0, at))
        if at < 0:
            return 0
    return at + 1


def _below(text: str, at: int, lines: int) -> int:
    for _ in range(lines + 1):
        at = line_end(text, at) + 1
        if at > len(text):
            return len(text)
    return at
