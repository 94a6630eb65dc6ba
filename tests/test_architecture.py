"""docs/architecture.md shows the rooms that there are, and names places in the code that are there."""

from __future__ import annotations

import re

import pytest

from bench.rooms import DOCUMENT, PICTURE, layers, svg

ROOT = DOCUMENT.parents[1]
TEXT = DOCUMENT.read_text(encoding="utf-8")
DECIDED = re.findall(r"^\| (.+\?) \| (.+) \| (.+) \|$", TEXT, re.MULTILINE)


def test_the_picture_shows_the_layers_that_lint_enforces() -> None:
    assert PICTURE.read_text(encoding="utf-8") == svg(layers(), TEXT), "make docs"


def test_a_room_that_is_not_described_is_named() -> None:
    with pytest.raises(ValueError, match="cellar"):
        svg([*layers(), ("cellar",)], TEXT)


@pytest.mark.parametrize(("question", "module", "begin"), DECIDED)
def test_where_it_is_decided(question: str, module: str, begin: str) -> None:
    """What a row names first is defined in the module that it names first."""
    place = ROOT / re.findall(r"`(patcher/[\w/]+\.py)`", module)[0 if "exit code" not in question else -1]
    if name := re.fullmatch(r"`(\w+)`", begin):
        assert re.search(rf"^(?:def|class) {name[1]}\b", place.read_text(encoding="utf-8"), re.MULTILINE)
