"""A unified diff of Python for a page: lines, each in parts with the kind of token that they are."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

Parts = tuple[tuple[str, str], ...]
"""Stretches of a line, each with a class of the style sheet: k keyword, s string, c comment, n number, "" none."""


def diff_lines(path: str, before: str, after: str) -> list[dict[str, Any]]:
    """The lines of the diff, each with `kind`, `sign` and `parts`; none where the texts are equal."""
    old, new = _split(before), _split(after)
    groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3))
    if not groups:
        return []
    found = [_line("head", "--- ", f"a/{path}"), _line("head", "+++ ", f"b/{path}")]
    coloured = _coloured(before), _coloured(after)
    for group in groups:
        first, last = group[0], group[-1]
        found.append(_line("hunk", "@@ ", f"-{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"))
        for what, begin, end, there, until in group:
            if what == "equal":
                found += [_code("", " ", coloured[0], old, at) for at in range(begin, end)]
                continue
            found += [_code("removed", "-", coloured[0], old, at) for at in range(begin, end)]
            found += [_code("added", "+", coloured[1], new, at) for at in range(there, until)]
    return found


def _split(text: str) -> list[str]:
    """Lines as Python counts them: a form feed ends none."""
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _line(kind: str, sign: str, text: str) -> dict[str, Any]:
    return {"kind": kind, "sign": sign, "parts": (("", text),)}


def _code(kind: str, sign: str, coloured: Sequence[Parts], lines: Sequence[str], at: int) -> dict[str, Any]:
    return {"kind": kind, "sign": sign, "parts": coloured[at] if at < len(coloured) else (("", lines[at]),)}


def _range(begin: int, end: int) -> str:
    """As `diff -u` writes it: `12`, `12,3`, and `11,0` for no lines after the eleventh."""
    count = end - begin
    return str(begin + 1) if count == 1 else f"{begin + (count > 0)},{count}"


@lru_cache(maxsize=32)
def _coloured(text: str) -> tuple[Parts, ...]:
    """Each line in parts. What cannot be read as Python is in one part from there on."""
    lines = _split(text)
    cuts: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    for kind, (row, column), (last, end) in _tokens(text):
        for at in range(row - 1, min(last, len(lines))):
            cuts[at].append((column if at == row - 1 else 0, end if at == last - 1 else len(lines[at]), kind))
    return tuple(tuple(_parts(line, marks)) for line, marks in zip(lines, cuts, strict=True))


def _parts(line: str, marks: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    at = 0
    for begin, end, kind in marks:
        if at < begin:
            yield "", line[at:begin]
        if max(at, begin) < end:
            yield kind, line[max(at, begin) : end]
        at = max(at, end)
    if at < len(line) or not line:
        yield "", line[at:]


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    kinds = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "n"}
    kinds |= {  # The parts of an f-string, each a token from Python 3.12 on.
        number: "s" for number, name in tokenize.tok_name.items() if name.startswith("FSTRING")
    }
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(_split(text)) + "\n").readline):
            kind = kinds.get(token.type, "")
            if token.type == tokenize.NAME and keyword.iskeyword(token.string):
                kind = "k"
            if kind:
                yield kind, token.start, token.end
    except (tokenize.TokenError, SyntaxError):
        return
