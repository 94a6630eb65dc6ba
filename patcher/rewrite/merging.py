"""A line diff of two texts, and a three-way merge of three. Texts are lists of lines.

    base            one             two             merged
    timeout: 1      timeout: 2      timeout: 1      timeout: 2
    backoff: 1      backoff: 1      backoff: 1      backoff: 1
    retries: 3      retries: 3      retries: 5      retries: 5

Where both sides have changed a line, or lines right beside each other, that is a conflict, and nothing is merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""A range of lines, half-open, counted from 0."""


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many items at the beginning are the same in both, and how many of the others at the end."""
    head = tail = 0
    most = min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def differing(old: Sequence[str], new: Sequence[str]) -> list[tuple[Span, Span]]:
    """The lines of both that are not the same, in order."""
    head, tail = common_ends(old, new)
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        ((i1 + head, i2 + head), (j1 + head, j2 + head))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def three_way(base: Sequence[str], one: Sequence[str], two: Sequence[str]) -> list[str] | None:
    """The lines with what both sides changed; None where the changes meet."""
    from merge3 import Merge3  # Seldom needed.

    lines: list[str] = []
    for group in Merge3(list(base), list(one), list(two)).merge_groups():
        if group[0] == "conflict":
            return None
        lines += group[1]
    return lines


def beside(base: Sequence[str], one: Sequence[str], two: Sequence[str]) -> list[str] | None:
    """The same, where lines right beside each other may have been changed on both sides; None where the same lines
    were, or where either side has put lines at one place.

    base: ["a", "b"]   one: ["A", "b"]   two: ["a", "B"]   merged: ["A", "B"]
    """
    sides = [[(old, side[slice(*new)]) for old, new in differing(base, side)] for side in (one, two)]
    for (start, stop), lines in sides[0]:
        for (first, last), others in sides[1]:
            apart = stop <= first or last <= start
            at_one_place = start == stop == first == last
            if (at_one_place or not apart) and ((start, stop), lines) != ((first, last), others):
                return None
    merged: list[str] = []
    at = 0
    both = {span: lines for side in sides for span, lines in side}
    for (start, stop), lines in sorted(both.items()):
        merged += base[at:start]
        merged += lines
        at = stop
    return [*merged, *base[at:]]
