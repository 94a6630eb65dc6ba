"""Take an item out of a comma-separated list, or put one behind it, in the style that the list is written in."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patcher.rewrite.code import position
from patcher.rewrite.marking import Splice

if TYPE_CHECKING:
    from patcher.rewrite.code import Code

_TRIVIA = re.compile(r"(?:[ \t\f\r\n]+|\\(?:\r\n|\r|\n)|#[^\r\n]*)+")


@dataclass(frozen=True, slots=True)
class Items:
    """The list's items as pairs of offsets, and where the list's inside begins and ends."""

    code: Code
    spans: tuple[tuple[int, int], ...]
    start: int
    end: int
    bracketed: bool = True


def skip(text: str, offset: int, end: int) -> int:
    """The offset behind white space, comments and continued line ends."""
    found = _TRIVIA.match(text, offset, end)
    return found.end() if found else offset


def argument_items(code: Code, call: ast.Call) -> Items:
    """The arguments of a call. A parenthesis around an argument belongs to it."""
    text, close = code.text, code.end(call) - 1
    start = code.end(call.func)
    while text[start := skip(text, start, close + 1)] != "(":
        start += 1
    nodes = sorted([*call.args, *call.keywords], key=position)
    return Items(code, parenthesized(code, nodes, start + 1, close), start + 1, close)


def parenthesized(code: Code, nodes: Sequence[ast.AST], start: int, end: int) -> tuple[tuple[int, int], ...]:
    """The spans of list items between two offsets, parentheses around an item included."""
    spans: list[tuple[int, int]] = []
    if len(nodes) == 1 and isinstance(nodes[0], ast.GeneratorExp) and code.start(nodes[0]) < start:
        return ((start, end),)
    for index, node in enumerate(nodes):
        first = start if index == 0 else after_comma(code.text, spans[-1][1], end)
        last = code.end(node)
        stop = code.start(nodes[index + 1]) if index + 1 < len(nodes) else end
        while (offset := skip(code.text, last, stop)) < stop and code.text[offset] == ")":
            last = offset + 1
        spans.append((skip(code.text, first, end), last))
    return tuple(spans)


def after_comma(text: str, offset: int, end: int) -> int:
    """The offset behind the comma that follows, or `offset` where none does."""
    comma = skip(text, offset, end)
    return comma + 1 if comma < end and text[comma] == "," else offset


def without(items: Items, gone: frozenset[int]) -> list[Splice]:
    """Take the items at some indexes out."""
    code, text = items.code, items.code.text
    if len(gone) == len(items.spans):
        last = after_comma(text, items.spans[-1][1], items.end)
        first, bottom = items.spans[0][0], code.line_of(last - 1)
        behind = text[last : code.line_stop(bottom)].strip(" \t\f")
        if items.bracketed and code.own_line(first) and (not behind or behind.startswith("#")):
            return [Splice(code.line_start(code.line_of(first)), code.line_start(bottom + 1), "")]
        return [Splice(items.spans[0][0], last + (0 if text[last : items.end].strip() else items.end - last), "")]
    splices = []
    for index in sorted(gone):
        start, end = items.spans[index]
        comma = after_comma(text, end, items.end)
        line, last = code.line_of(start), code.line_of(comma - 1)
        behind = text[comma : code.line_stop(last)].strip(" \t\f")
        kept_before = any(other not in gone for other in range(index))
        if items.bracketed and code.own_line(start) and (not behind or behind.startswith("#")) and comma <= items.end:
            splices.append(Splice(code.line_start(line), code.line_start(last + 1), ""))
        elif index + 1 < len(items.spans) and (not kept_before or code.line_of(items.spans[index + 1][0]) == last):
            splices.append(Splice(start, _until(text, comma, items.spans[index + 1][0]), ""))
        elif index and "#" not in text[items.spans[index - 1][1] : start]:
            splices.append(Splice(items.spans[index - 1][1], end, ""))
        else:
            splices.append(Splice(start, comma, ""))
    return splices


def _until(text: str, comma: int, following: int) -> int:
    """Up to the next item, or only past the comma where comments stand between."""
    return comma if "#" in text[comma:following] else following


def with_appended(items: Items, new: str) -> list[Splice]:
    """Put an item behind the last one."""
    code, text = items.code, items.code.text
    if not items.spans:
        return [Splice(items.start, items.start, new)]
    start, end = items.spans[-1]
    comma = after_comma(text, end, items.end)
    last = code.line_of(max(start, comma - 1))
    if not code.own_line(start):
        return [Splice(end, end, f", {new}")]
    indent = code.indent(start)
    if code.line_of(items.end) == last:
        return [Splice(end, end, f",{code.newline}{indent}{new}")]
    stop = code.line_stop(last)
    line = f"{code.newline}{indent}{new}"
    return [Splice(stop, stop, f"{line},")] if comma != end else [Splice(end, end, ","), Splice(stop, stop, line)]
