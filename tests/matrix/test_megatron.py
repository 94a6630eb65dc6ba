"""What breaks of a job that trains with Megatron, on verl's releases, and that the records repair it."""

from __future__ import annotations

from functools import cache

import pytest

from patcher import api
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.repairs import check_with_records
from patcher.packages.releases import sources, wheel
from patcher.records.load import load

pytestmark = [pytest.mark.network, pytest.mark.slow]

QUEUE = "megatron.core.dist_checkpointing.strategies.base.async_calls"
MODEL_TYPE = "megatron.core.enums.ModelType.encoder_and_decoder"
BROKEN = {("0.6.1", "0.18.0"): [MODEL_TYPE, MODEL_TYPE], ("0.7.1", "0.18.0"): [QUEUE]}
"""What breaks as the release is: megatron-core 0.17 dropped what verl 0.7 asks before each step, and what verl 0.6
compares with where it makes the model without mbridge, its default."""


@cache
def project(verl: str) -> Project:
    """Read once for all releases that it is held against."""
    return Project(wheel("verl", verl))


@cache
def symbols(megatron: str) -> Symbols:
    return Symbols(sources("megatron-core", megatron) / "megatron")


@pytest.mark.parametrize("megatron", ["0.16.0", "0.18.0"])
@pytest.mark.parametrize("verl", ["0.6.1", "0.7.1", "0.8.0"])
def test_what_breaks_before_and_after_the_record(verl: str, megatron: str) -> None:
    target = Target({"megatron": megatron}, {"megatron": symbols(megatron)}, {"megatron-core": megatron})
    records = [one for one in load() if one.enabled]
    before, after = check_with_records(project(verl), target, records, verl)
    assert [one.symbol for one in before.of("break")] == BROKEN.get((verl, megatron), [])
    assert not after.of("break")


@pytest.mark.parametrize("verl", ["0.6.0", "0.7.0", "0.7.1", "0.8.0", "0.9.0"])
def test_each_has_its_place_where_its_range_reaches(verl: str) -> None:
    ids = [one.id for one in load() if one.id.startswith("megatron-")]
    assume = {"megatron-core": "0.18.0", "vllm": "0.20.2", "torch": "2.11.0"}
    told = {one.id: one.kind for one in api.plan(wheel("verl", verl), assume=assume, ids=ids).records if one.id in ids}
    wanted = {
        "megatron-async-calls": verl[:3] == "0.7",
        "megatron-model-type": verl[:3] in ("0.6", "0.7", "0.8"),
        "megatron-value-head-flash-attn": verl[:3] in ("0.6", "0.7"),
    }
    assert told == {name: "pending" if needed else "not-needed" for name, needed in wanted.items()}
