"""The records for SGLang on verl's releases: after them `check` finds no break, and none misses its place."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from patcher import api
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.repairs import check_with_records
from patcher.packages.releases import sources, wheel
from patcher.records.load import load
from tests.lanes import ALL_CASES

pytestmark = [pytest.mark.network, pytest.mark.slow]

VERL = ("0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
BROKEN = {"0.6.0": 3, "0.6.1": 3, "0.7.0": 1, "0.7.1": 1}
"""How many breaks a release has as it is, with SGLang 0.5.10 and later; verl 0.9.0 has one on 0.5.23 alone."""


@cache
def project(verl: str) -> Project:
    """Read once for all releases that it is held against."""
    return Project(wheel("verl", verl))


@cache
def symbols(sglang: str) -> Symbols:
    return Symbols(sources("sglang", sglang) / "sglang")


@pytest.mark.parametrize("sglang", ["0.5.10", "0.5.12", "0.5.23"] if ALL_CASES else ["0.5.10", "0.5.23"])
@pytest.mark.parametrize("verl", VERL)
def test_nothing_breaks_after_the_records(verl: str, sglang: str) -> None:
    target = Target({"sglang": sglang}, {"sglang": symbols(sglang)}, {"sglang": sglang})
    before, after = check_with_records(project(verl), target, [one for one in load() if one.enabled], verl)
    later = (verl, sglang) == ("0.9.0", "0.5.23")
    assert len(before.of("break")) == BROKEN.get(verl, 0) + later
    assert not after.of("break")


@pytest.mark.parametrize("verl", VERL)
def test_each_has_its_place_where_its_range_reaches(verl: str) -> None:
    root: Path = wheel("verl", verl)
    ids = [one.id for one in load() if one.id.startswith("sglang-")]
    assume = {"sglang": "0.5.12", "vllm": "none", "torch": "2.11.0"}
    told = {one.id: one.kind for one in api.plan(root, assume=assume, ids=ids).records if one.id in ids}
    assert set(told.values()) <= {"pending", "not-needed"}, told
