"""Drafts for a released verl on released vLLM, without the shipped records: which known breaks they repair, and how."""

from __future__ import annotations

import pytest

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.drafts.drafting import draft_records
from patcher.check.drafts.inputs import Draft, DraftInputs, Releases
from patcher.check.pair import check_pair
from patcher.packages.releases import sources, wheel
from patcher.plan.inputs import belongs
from patcher.records.load import load
from patcher.rewrite.edits import Edit

pytestmark = [pytest.mark.network, pytest.mark.slow]

VLLM = ("0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.20.2")
SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"


@pytest.fixture(scope="module")
def drafts() -> dict[str, Draft]:
    target = Target({"vllm": "0.20.2"}, {"vllm": symbols("0.20.2")}, {"vllm": "0.20.2"})
    project = Project(wheel("verl", "0.6.1"))
    report = check_pair(project, target, verl="0.6.1")
    releases = Releases({"vllm": VLLM}, lambda _package, version: symbols(version))
    return {
        draft.id: draft for draft in draft_records(report.findings, DraftInputs(project, target, "0.6.1", releases))
    }


def symbols(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


def changes(edits: tuple[Edit, ...]) -> set[tuple[str, ...]]:
    keys = ("file", "call", "old", "new", "value")
    return {tuple(str(getattr(edit, key, None)) for key in keys) for edit in edits}


@pytest.mark.parametrize(
    ("draft", "shipped"),
    [
        ("draft-vllm-lora-models-moved", "vllm-lora-model-moved"),
        ("draft-vllm-utils-moved", "vllm-utils-split"),
        ("draft-vllm-asyncllm-from-vllm-config-disable-log-requests-renamed", "vllm-log-requests"),
    ],
)
def test_a_draft_makes_the_edits_of_the_shipped_record(drafts: dict[str, Draft], draft: str, shipped: str) -> None:
    known = {record.id: record for record in load()}[shipped]
    mine = tuple(edit for edit in known.edits if belongs("0.6.1")(edit))
    assert changes(drafts[draft].record.edits) == changes(mine)
    assert drafts[draft].record.when.versions["vllm"].removesuffix(".0") == known.when.versions["vllm"]


def test_the_argument_that_shifts_all_others_is_left_out(drafts: dict[str, Draft]) -> None:
    found = [draft for draft in drafts.values() if "init-app-state" in draft.id]
    assert "init_app_state($ARG1, $$$REST)" in found[0].text
    assert "init_app_state(engine_client, app.state, args)" in found[0].text


def test_no_flag_is_renamed_without_its_sense(drafts: dict[str, Draft]) -> None:
    for draft in drafts.values():
        assert "enable_log_requests=engine_args.disable_log_requests" not in draft.text
