"""The words without which a pattern cannot match. A log is searched for these first, so that patterns are tried on few
lines.

The pattern is parsed with Python's own parser of `re`, and its tree is searched for text that every match must contain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

_COMMON = re.compile(
    r"errors?|fail(?:ed)?|exceptions?|warnings?|info|workers?|traceback|engine|server|checkpoint|process|time(?:out)?|step|"
    r"memory|model|import|tokens?|ranks?|steps|loss|data|files?|line|to|in|of|the|an?|is|was|not?|for|and|or|on|with|from|"
    r"by|be|at|it|as|this|that|out|rollout|inference|generation|v?llm|ray|torch|verl|cuda|[gc]pu|default|command|type|key|"
    r"values?|names?|size|got|argument|expected|number|python|module|object|config|set|max|min|actor|critic|reference|nan|"
    r"attribute|found|load(?:ing|ed)?|init|train(?:ing)?|len(?:gth)?|start(?:ed)?|run(?:ning)?|exit|code|device|used|total|"
    r"address|path|node|seconds|batch|available"
)
"""Words that healthy logs are full of. They are a bad choice for what to search for."""
_WORDS = re.compile(r"[a-z]+|[^a-z]+")
_LITERAL = re.compile(r"(?:[^\\.^$*+?{}\[\]|()\x80-\U0010ffff]|\\[^\w\s\x80-\U0010ffff])+")
_ESCAPE = re.compile(r"\\(.)")
_LEAST = 3
"""Letters of the shortest word that is looked for: `nan` must do, and two letters are in every line."""
_MOST = 24
"""Words of one set: `(?:a|b)(?:c|d)…` multiplies, and each word makes the automaton larger. Set by hand."""


_known: dict[str, frozenset[str]] = {}


def learn(words: Mapping[str, Iterable[str]]) -> None:
    """Add the words of patterns that an earlier process computed."""
    _known.update({pattern: frozenset(found) for pattern, found in words.items()})


def required_words(pattern: str) -> frozenset[str]:
    """Words in lower case, of which each text that `pattern` matches holds at least one.

    Raises ValueError for a pattern that can match a text without any word of three letters or more.
    """
    if pattern not in _known:
        _known[pattern] = _words_of(pattern)
    return _known[pattern]


def _words_of(pattern: str) -> frozenset[str]:
    text = _literal(pattern)
    found = frozenset({text.lower()}) if text is not None else _of_sequence(_parsed(pattern))
    if not found or min(map(len, found)) < _LEAST:
        raise ValueError(pattern)
    return found


def width(pattern: str) -> int:
    """The least number of characters that `pattern` matches. Raises re.error."""
    text = _literal(pattern)
    return len(text) if text is not None else int(_parsed(pattern).getwidth()[0])


def _literal(pattern: str) -> str | None:
    """The one text that a pattern matches, if it has nothing but escapes."""
    return _ESCAPE.sub(r"\1", pattern) if _LITERAL.fullmatch(pattern) else None


@lru_cache(maxsize=4096)
def _parsed(pattern: str) -> Any:
    return _parser.parse(pattern, re.IGNORECASE)


def _of_sequence(parsed: Any) -> frozenset[str]:
    """The best of the sets of words that a sequence requires; empty where it requires nothing."""
    return max(_required(parsed), key=_worth, default=frozenset())


def _worth(words: frozenset[str]) -> float:
    """How good a set is to search for. Long words are rare, and few words occur less often than many."""
    shortest = min(map(len, words), default=0)
    if shortest < _LEAST:
        return -100.0
    return min(map(_rarity, words)) - len(words) * 0.3


def _rarity(word: str) -> float:
    """The length of a word, with parts that are common words counted for a quarter, and signs for a half."""
    parts = _WORDS.findall(word)
    return sum(len(part) * (0.25 if _COMMON.fullmatch(part) else 1 if part[0].isalpha() else 0.5) for part in parts)


def _required(parsed: Any) -> Iterator[frozenset[str]]:
    """The sets of words that a sequence requires, each of which may be chosen. Adjacent texts are joined."""
    run = frozenset({""})
    for code, value in parsed:
        texts = _texts(str(code), value)
        if texts is not None and len(run) * len(texts) <= _MOST:
            run = frozenset(before + text for before in run for text in texts)
            continue
        yield run
        run = texts if texts is not None else frozenset({""})
        if texts is None:
            yield from _inside(str(code), value)
    yield run


def _texts(code: str, value: Any) -> frozenset[str] | None:
    """All texts that one node of the tree can match; None where they are many or not known."""
    match code:
        case "LITERAL" if value < 128:
            return frozenset({chr(value).lower()})
        case "IN" if len(value) <= 4 and all(str(kind) == "LITERAL" and char < 128 for kind, char in value):
            return frozenset(chr(char).lower() for _, char in value)
        case "SUBPATTERN":
            return _all(value[3])
        case "ATOMIC_GROUP":
            return _all(value)
        case "AT":
            return frozenset({""}) if str(value) in ("AT_BOUNDARY", "AT_NON_BOUNDARY") else None
        case "BRANCH":
            branches = [_all(branch) for branch in value[1]]
            if all(branch is not None for branch in branches):
                found = _union(branch for branch in branches if branch is not None)
                return found if len(found) <= _MOST else None
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[1] == 1:
            texts = _all(value[2])
            if texts is not None:
                return texts | {""} if value[0] == 0 else texts
    return None


def _all(parsed: Any) -> frozenset[str] | None:
    """All texts that a sequence can match; None where they are many or not known."""
    found = frozenset({""})
    for code, value in parsed:
        texts = _texts(str(code), value)
        if texts is None or len(found) * len(texts) > _MOST:
            return None
        found = frozenset(before + text for before in found for text in texts)
    return found


def _inside(code: str, value: Any) -> Iterator[frozenset[str]]:
    match code:
        case "SUBPATTERN":
            yield from _required(value[3])
        case "ATOMIC_GROUP":
            yield from _required(value)
        case "BRANCH":
            branches = [_of_sequence(branch) for branch in value[1]]
            if all(branches):
                yield _union(branches)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] >= 1:
            yield from _required(value[2])


def _union(words: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(word for some in words for word in some)
