"""What breaks of a job that trains with Megatron, on verl's releases, and what the record repairs of it."""

from __future__ import annotations

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
BROKEN = {("0.6.1", "0.18.0"): [MODEL_TYPE, MODEL_TYPE], ("0.7.0", "0.18.0"): [QUEUE], ("0.7.1", "0.18.0"): [QUEUE]}
"""What breaks as the release is: megatron-core 0.17 dropped what verl 0.7 asks before each step, and 0.18 what verl 0.6
compares with where it makes the model without mbridge, its default."""
LEFT = {("0.6.1", "0.18.0"): [MODEL_TYPE, MODEL_TYPE]}
"""What no record repairs."""


@pytest.mark.parametrize("megatron", ["0.14.0", "0.16.0", "0.18.0"])
@pytest.mark.parametrize("verl", ["0.6.1", "0.7.0", "0.7.1", "0.8.0"])
def test_what_breaks_before_and_after_the_record(verl: str, megatron: str) -> None:
    folder = sources("megatron-core", megatron) / "megatron"
    target = Target({"megatron": megatron}, {"megatron": Symbols(folder)}, {"megatron-core": megatron})
    records = [one for one in load() if one.enabled]
    before, after = check_with_records(Project(wheel("verl", verl)), target, records, verl)
    assert [one.symbol for one in before.of("break")] == BROKEN.get((verl, megatron), [])
    assert [one.symbol for one in after.of("break")] == LEFT.get((verl, megatron), [])


@pytest.mark.parametrize(("verl", "kind"), [("0.6.1", "not-needed"), ("0.7.0", "pending"), ("0.7.1", "pending")])
def test_the_record_has_its_places(verl: str, kind: str) -> None:
    assume = {"megatron-core": "0.18.0", "vllm": "0.20.2", "torch": "2.11.0"}
    plan = api.plan(wheel("verl", verl), assume=assume, ids=["megatron-async-calls"])
    assert {one.id: one.kind for one in plan.records}["megatron-async-calls"] == kind
