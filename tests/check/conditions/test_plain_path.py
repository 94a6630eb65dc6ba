"""Breaks of real releases on the plain path: what runs on a GPU showed."""

from __future__ import annotations

from functools import lru_cache

import pytest

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair
from patcher.packages.releases import sources

pytestmark = [pytest.mark.network, pytest.mark.slow]

SERVER, SPMD, ROLLOUT = "vllm_async_server.py", "vllm_rollout_spmd.py", "vllm_rollout.py"
OLD = {(SERVER, 38), (SERVER, 92), (SERVER, 332), (SERVER, 340)}


@lru_cache(maxsize=2)
def tree(version: str) -> Project:
    return Project(sources("verl", version))


def findings(verl: str, vllm: str) -> tuple[Finding, ...]:
    symbols = Symbols(sources("vllm", vllm) / "vllm")
    return check_pair(tree(verl), Target({"vllm": vllm}, {"vllm": symbols}, {"vllm": vllm}), verl=verl).findings


@pytest.mark.parametrize(
    ("verl", "vllm", "breaks"),
    [
        ("0.6.1", "0.12.0", OLD),
        ("0.6.1", "0.20.2", {*OLD, ("utils.py", 18), (SPMD, 596), (SPMD, 611)}),
        ("0.7.0", "0.20.2", {(ROLLOUT, 205), (ROLLOUT, 218)}),
        ("0.7.1", "0.20.2", set()),
        ("0.8.0", "0.20.2", set()),
        ("0.9.1", "0.24.0", set()),
    ],
)
def test_breaks_are_those_that_were_seen(verl: str, vllm: str, breaks: set[tuple[str, int]]) -> None:
    told = {(one.file.rpartition("/")[2], one.line) for one in findings(verl, vllm) if one.severity == "break"}
    assert told == breaks


def test_what_is_around_the_plain_path_is_told_apart() -> None:
    told = {(one.file.rpartition("/")[2], one.line): one.severity for one in findings("0.7.0", "0.20.2")}
    assert told[SERVER, 449] == "optional"  # several nodes
    assert told[SERVER, 605] == told[SERVER, 645] == "guarded"  # every exception is caught
    assert told[SERVER, 71] == told[SERVER, 67] == "guarded"  # version tests
    assert told[ROLLOUT, 49] == "guarded"  # another import is tried
    assert told["vllm_fp8_utils.py", 407] == "optional"  # a feature that is off
    assert told["vllm_fp8_utils.py", 331] == "guarded"  # what a test of versions chooses on older releases


@pytest.mark.parametrize("verl", ["0.7.1", "0.8.0"])
def test_a_module_that_raises_again_breaks_whoever_imports_it(verl: str) -> None:
    told = {(one.symbol, one.severity) for one in findings(verl, "0.27.0") if one.file.endswith("vllm_fp8_utils.py")}
    assert ("vllm.model_executor.layers.fused_moe.layer.FusedMoE", "break") in told
