"""Lines that make a backtracking pattern slow, derived from its own parts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_RUNS = (
    " ",
    "a",
    "A_",
    "0",
    "(",
    ",",
    "'",
    '"',
    "/",
    "a/",
    "a.",
    "a: ",
    ": ",
    "[",
    "\t",
    "-",
    "0 ",
    "a ",
    "0,",
    "Error",
    "失",
)
_CHARACTERS = "a0_ -/.:'\"()[]=,%|A\t"


def hostile(pattern: str, length: int, *, few: bool = False) -> Iterator[str]:
    """Lines of that length: each prefix of a text that matches, with one part pumped, or all of it again and again.

    `few`: without those that end in a run of some sign that the pattern need not have."""
    sequence = list(_parser.parse(pattern, re.IGNORECASE))
    seen = set()
    for way in _ways(sequence):
        samples = [_sample(part) for part in way]
        for at in range(len(way) + 1):
            prefix = "".join(samples[:at])
            pumps = [*_RUNS] if at in (0, len(way)) and not few else [" ", "a"]
            if at < len(way):
                pumps += [_sample(way[at]), _sample(way[at], 3)]
            if at:
                pumps += [prefix, samples[at - 1], prefix[-12:], prefix + " "]
            for pump in pumps:
                if pump and (key := (prefix, pump)) not in seen:
                    seen.add(key)
                    yield (prefix + pump * (length // len(pump) + 1))[:length]


def _ways(sequence: list[Any]) -> Iterator[list[Any]]:
    """The sequence by each branch of its alternatives, flattened; not all combinations of them."""
    flat: list[list[Any]] = [[]]
    for part in sequence:
        code, value = str(part[0]), part[1]
        if code == "SUBPATTERN":
            inner = list(_ways(list(value[3])))
        elif code == "BRANCH":
            inner = [way for branch in value[1] for way in _ways(list(branch))]
        elif code in ("MAX_REPEAT", "MIN_REPEAT") and len(list(value[2])) > 1:
            inner = [[part]]
        else:
            inner = [[part]]
        if len(inner) == 1:
            flat = [[*way, *inner[0]] for way in flat]
        else:
            flat = [[*flat[min(number, len(flat) - 1)], *way] for number, way in enumerate(inner)]
    yield from flat


def _sample(part: Any, times: int = 1) -> str:
    """A text that a part of a parsed pattern matches."""
    code, value = str(part[0]), part[1]
    match code:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return next(one for one in _CHARACTERS if ord(one) != value)
        case "ANY":
            return "a"
        case "IN":
            return next((one for one in _CHARACTERS if _in(one, value)), "é")
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            inner = "".join(map(_sample, value[2]))
            return inner * min(max(value[0], times), int(value[1]))
        case "SUBPATTERN":
            return "".join(map(_sample, value[3]))
        case "ATOMIC_GROUP":
            return "".join(map(_sample, value))
        case "BRANCH":
            return "".join(map(_sample, value[1][0]))
        case _:
            return ""


def _in(character: str, members: Any) -> bool:
    negated, found = False, False
    for code, value in members:
        match str(code):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found = found or chr(value) == character
            case "RANGE":
                found = found or value[0] <= ord(character) <= value[1]
            case "CATEGORY":
                kind = str(value).rpartition("_")[2].lower()
                known = {"digit": r"\d", "word": r"\w", "space": r"\s"}[kind]
                inside = re.match(known, character) is not None
                found = found or inside is ("NOT" not in str(value))
    return found is not negated
