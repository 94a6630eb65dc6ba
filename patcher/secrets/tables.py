"""Tables whose heads name a secret: Markdown, psql, boxes, CSV, tabs and columns of words."""

from __future__ import annotations

import re
from typing import Iterator

from patcher.secrets.names import NEEDLE, PASSWORD, SECRET, rank
from patcher.secrets.patterns import Pattern
from patcher.secrets.values import Span, hidden, line_end

_RULE = Pattern(r"[\s|+\-=:─━═┼╪╬├┤┝┥┡┩╇╞╡╟╢┠┨╠╣└┘┌┐┏┓┗┛┳┻╔╗╚╝╦╩╭╮╰╯┬┴╈╋│┃║]+")
_BARS = re.compile("[|│┃║]")
_NAME = Pattern(r"(?:\A|[\s\"'=])[^\W\d][\w.-]{0,40}[\"']?\s*\Z")
_MOST = 300
"""Rows of one table that are looked at: psql and pandas show fewer before they leave rows out."""


def find_columns(text: str, small: str) -> Iterator[Span]:
    """Where cells stand below a head that names a secret. `small` is the same text in small letters."""
    done = -1
    for hit in NEEDLE.finditer(small):
        if hit.start() < done:
            continue
        begin, end = text.rfind("\n", 0, hit.start()) + 1, line_end(text, hit.start())
        done = end
        if end - begin <= 2000 and end < len(text):
            for span in _below(text, begin, end):
                yield span
                done = max(done, line_end(text, span[1]))


def _below(text: str, begin: int, end: int) -> Iterator[Span]:
    head = text[begin:end]
    after = text[end + 1 : line_end(text, end + 1)]
    if _BARS.search(head):
        # psql has `a | b` above `---+---`; without a rule it is a pair of a name and its value.
        wanted = _wanted(head, _cells(head, 0, _BARS)) if len(after) > 2 and _is_rule(after) else []
        if wanted:
            yield from _rows(text, line_end(text, end + 1) + 1, _BARS, wanted, len(_cells(head, 0, _BARS)))
        return
    for sign in (re.compile("\t"), re.compile(","), re.compile(";")):
        cells = _cells(head, 0, sign)
        if len(cells) > 1 and all(_NAME.search(head[slice(*cell)]) for cell in cells[:1] + cells[-1:]):
            wanted = _wanted(head, cells)
            if wanted and len(_cells(after, 0, sign)) == len(cells):
                yield from _rows(text, end + 1, sign, wanted, len(cells))
            return
    words = [found.span() for found in re.finditer(r"\S+(?: \S+)*", head)]
    if (
        len(words) > 1
        and "  " in head.strip()
        and all(re.fullmatch(r"[^\W\d][\w -]{0,40}", head[slice(*one)]) for one in words)
    ):
        wanted = _wanted(head, words)
        if wanted:
            yield from _aligned(text, end + 1, words, wanted)


def _cells(line: str, offset: int, sign: re.Pattern[str]) -> list[Span]:
    cells, at = [], 0
    for found in sign.finditer(line):
        cells.append((offset + at, offset + found.start()))
        at = found.end()
    return [*cells, (offset + at, offset + len(line))]


def _wanted(head: str, cells: list[Span]) -> list[int]:
    """The numbers of the columns whose heads name a secret."""
    return [number for number, cell in enumerate(cells) if _names_a_secret(head[slice(*cell)])]


def _names_a_secret(cell: str) -> bool:
    word = cell.strip().strip("\"'*`_ ").replace(" ", "_")
    return 0 < len(word) < 40 and rank(word) in (PASSWORD, SECRET)


def _rows(text: str, at: int, sign: re.Pattern[str], wanted: list[int], count: int) -> Iterator[Span]:
    for _ in range(_MOST):
        if at >= len(text):
            return
        end = line_end(text, at)
        line = text[at:end]
        if _is_rule(line):
            at = end + 1
            continue
        cells = _cells(line, at, sign)
        if len(cells) != count:
            return
        for number in wanted:
            yield from _cell(text, cells[number])
        at = end + 1


def _cell(text: str, span: Span) -> Iterator[Span]:
    begin, end = span
    value = text[begin:end]
    begin += len(value) - len(value.lstrip(" \t\"'`*"))
    end -= len(value) - len(value.rstrip(" \t\r\"'`*"))
    if end > begin and hidden(SECRET, text[begin:end]):
        yield begin, end


def _aligned(text: str, at: int, words: list[Span], wanted: list[int]) -> Iterator[Span]:
    """Columns that are kept apart by spaces: a cell belongs to the head that begins where it does."""
    for _ in range(_MOST):
        end = line_end(text, at)
        line = text[at:end]
        if not line.strip() or at >= len(text):
            return
        found = [cell.span() for cell in re.finditer(r"\S+(?: \S+)*", line)]
        if len(found) < 2 or not any(cell[0] == words[0][0] for cell in found):
            return
        for number in wanted:
            for cell in found:
                if cell[0] == words[number][0] or (cell[0] < words[number][1] and cell[1] > words[number][0]):
                    yield from _cell(text, (at + cell[0], at + cell[1]))
        at = end + 1


def is_head(text: str, at: int) -> bool:
    """Whether the line at `at` is the head of a table: a rule stands below it."""
    begin = line_end(text, at) + 1
    below = text[begin : line_end(text, begin)]
    return 2 < len(below) < 4000 and _is_rule(below)


def _is_rule(line: str) -> bool:
    """Whether a line only rules off what is above it: `---+---`, `|---|---|`, `├───┼───┤`."""
    return bool(line.strip()) and bool(_RULE.fullmatch(line))


def continued(text: str, start: int, end: int) -> Iterator[Span]:
    """The rest of a cell in the rows below, where a box was too narrow for it: the cells before it are empty there."""
    line = text.rfind("\n", max(0, start - 2000), start) + 1
    if not line and start > 2000:
        return
    number = len(_BARS.findall(text, line, start))
    for _ in range(20):
        begin = line_end(text, end) + 1
        end = line_end(text, begin)
        row = text[begin:end]
        cells = _cells(row, begin, _BARS)
        if len(cells) <= number + 1 or _RULE.fullmatch(row):
            return
        if any(text[slice(*cell)].strip() for cell in cells[:number]):
            return
        yield from _cell(text, cells[number])
