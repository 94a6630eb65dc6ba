"""docs/coverage.md names, for each of the 69 rows, things that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<number>\d+) \| (?P<what>[^|]+) \| (?P<where>[^|]+) \| (?P<test>[^|]+) \|$", re.MULTILINE)
ROWS = list(ROW.finditer((ROOT / "docs/coverage.md").read_text(encoding="utf-8")))


def test_every_row_is_there_once_and_in_order() -> None:
    assert [int(row["number"]) for row in ROWS] == list(range(1, 70))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["number"])
def test_what_a_row_names_exists(row: re.Match[str]) -> None:
    places = re.findall(r"`([\w./-]+/[\w./-]+)`", row["where"])
    assert places
    assert [place for place in places if not (ROOT / place).exists()] == []
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row["test"])
    assert tests
    for file, name in tests:
        assert re.search(rf"^def {name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (file, name)
