"""Merges of three texts, line by line."""

from __future__ import annotations

import pytest

from patcher.rewrite.merging import beside, three_way

BASE = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("one", "two", "merged"),
    [
        (["A", "b", "c"], ["a", "B", "c"], ["A", "B", "c"]),
        (["a", "b", "c", "d"], ["a", "b", "C"], ["a", "b", "C", "d"]),
        (["a", "new", "b", "c"], ["a", "c"], ["a", "new", "c"]),
        (["a", "B", "c"], ["a", "B", "c"], ["a", "B", "c"]),
        (BASE, ["c"], ["c"]),
    ],
)
def test_lines_right_beside_each_other_are_merged(one: list[str], two: list[str], merged: list[str]) -> None:
    assert beside(BASE, one, two) == beside(BASE, two, one) == merged


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (["a", "B", "c"], ["a", "X", "c"]),
        (["a", "x", "b", "c"], ["a", "y", "b", "c"]),
        (["a", "c"], ["a", "B", "c"]),
        (["A", "B", "c"], ["a", "X", "c"]),
    ],
)
def test_the_same_lines_are_not(one: list[str], two: list[str]) -> None:
    assert beside(BASE, one, two) is None
    assert beside(BASE, two, one) is None


def test_the_other_merge_wants_a_line_between() -> None:
    assert three_way(BASE, ["A", "b", "c"], ["a", "B", "c"]) is None
    assert three_way(BASE, ["A", "b", "c"], ["a", "b", "C"]) == ["A", "b", "C"]
