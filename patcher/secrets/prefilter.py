"""Where in a text a secret may stand at all: the rules that look closely would cost too much for all of a large log."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Tuple

from patcher.secrets import assignments, contexts
from patcher.secrets.names import NEEDLES, PASSWORD, SECRET, rank
from patcher.secrets.patterns import Pattern, either
from patcher.secrets.tokens import STARTS
from patcher.secrets.values import Span, line_end

SIGNS = tuple(sorted(contexts.NEEDLES | set(NEEDLES)))
"""What stands in every text that holds a secret, in small letters; the short words of `assignments` apart."""
FindSigns = Callable[[str], Iterable[Tuple[int, int]]]
"""Where the signs stand in a text of small letters."""

_SIGN = Pattern(lambda: either(SIGNS))
_NAMES = {sign for sign in SIGNS if any(needle in sign for needle in NEEDLES)}
_STARTS = {start.lower() for start in STARTS} - set(contexts.WORDS)
_GIVEN = Pattern(
    r"[\"'\]\\)}>`]{0,20}[ \t]{0,40}(?:[=:|│┃║\t,-]|</?\w)\S{0,3}[^\n]{0,40}[\w\"'|>]|[\"'\\:]{0,20}[ \t]{0,40}\r?\n"
)
"""What follows a name that stands for a secret at times only, where it is given something."""
_NEAR, _FAR, _KEY = 4, 120, 400
"""Lines that are looked at around one with a sign.

Most values stand beside their names or on the next line. A name may also be the head of a table or of a block of YAML,
far above its values; 120 rows are a guess. A private key has up to 400 lines, as in `contexts`.
"""
_CLOSE = 2000
"""Characters within which of several private keys only the first is looked around for: its 400 lines cover the others."""
_HEAD = Pattern(r"[\"'\\]{0,20}[ \t]{0,40}[:=][ \t]{0,40}[|>]?[-+]?[ \t]{0,40}(?:#[^\n]{0,200})?\r?\n")
_BESIDE = (",", ";", "\t", "  ")


def find_signs(small: str) -> Iterator[Span]:
    """Where SIGNS stand in a text of small letters, with the standard library alone."""
    return (found.span() for found in _SIGN.finditer(small))


def stretches(text: str, small: str, finder: FindSigns) -> Iterator[Span]:
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


def _hits(text: str, small: str, finder: FindSigns) -> Iterator[tuple[int, int, int]]:
    ranks: dict[str, str] = {}
    done = 0
    for start, end in sorted([*finder(small), *assignments.short_words(text, small)]):
        sign = small[start:end]
        if sign in contexts.NEEDLES and _stands_in_context(text, start, sign):
            yield start, end, _KEY if sign[:5] == "-----" else _NEAR
        if sign not in contexts.NEEDLES or sign in _NAMES:
            if start < done:
                continue
            start, end = assignments.word_at(text, start, end, done)
            done = end
            word = text[start:end]
            kind = ranks.get(word)
            if kind is None:
                kind = ranks[word] = rank(word)
            # A doubtful name counts where it is given something: `key: X`, but not `a key that is missing`.
            if kind in (PASSWORD, SECRET) or (kind and _GIVEN.match(text, end)):
                yield start, end, _lines(text, start, end, word)


def _lines(text: str, start: int, end: int, word: str) -> int:
    if word == "Secret" and "kind" in text[max(0, start - 20) : start]:
        return _KEY
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    beside = before.endswith(_BESIDE) or behind.startswith(_BESIDE)
    return _FAR if _HEAD.match(text, end) or beside or any(bar in text[end : end + 200] for bar in "|│┃║") else _NEAR


def _stands_in_context(text: str, at: int, sign: str) -> bool:
    if sign == "://":
        return contexts.is_address(text, at)
    return sign not in _STARTS or contexts.is_token(text, at)


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
