"""A package that several distributions add to, as megatron: what one of them lacks may be another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair
from patcher.check.repairs import around
from patcher.check.targets import module_of
from patcher.packages import Environment, Installed
from patcher.packages.agent.folders import package_in

TREE = """
from megatron.core import parallel_state
from megatron.core.gone import x
from megatron.bridge import AutoBridge


def get_model():
    return parallel_state.is_stage_before_split()
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    core = tmp_path / "sources/megatron/core"
    core.mkdir(parents=True)
    (core / "__init__.py").touch()
    (core / "parallel_state.py").write_text("def is_first_stage(): ...\n")
    return tmp_path / "sources"


def test_it_is_found_though_the_folder_has_no_init(sources: Path) -> None:
    assert module_of("megatron-core") == "megatron"
    assert package_in(sources, "megatron") == sources / "megatron"
    (sources / "other/part").mkdir(parents=True)
    (sources / "other/part/__init__.py").touch()
    assert package_in(sources, "other") is None, "any folder that holds packages would be one"


def test_records_are_planned_for_the_release_that_is_checked_against(sources: Path) -> None:
    target = Target({"megatron": "0.18.0"}, {"megatron": Symbols(sources / "megatron")}, {"megatron-core": "0.18.0"})
    installed = Environment(None, {"megatron-core": Installed("megatron-core", "0.16.0")})
    assert around(installed, target).version("megatron-core") == "0.18.0"


def test_what_is_beside_its_own_part_is_not_decided(sources: Path, tmp_path: Path) -> None:
    symbols = Symbols(sources / "megatron")
    assert symbols.has("megatron.core.parallel_state.is_first_stage") is True
    assert symbols.has("megatron.core.gone") is False
    assert symbols.has("megatron.bridge") is None
    assert symbols.has("megatron.bridge.AutoBridge") is None


def test_what_a_job_that_trains_with_it_runs_breaks(sources: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "verl/trainer").mkdir(parents=True)
    for folder in ("verl", "verl/trainer"):
        (tree / folder / "__init__.py").touch()
    (tree / "verl/megatron_utils.py").write_text(TREE)
    (tree / "verl/trainer/main_ppo.py").write_text(
        "from verl.megatron_utils import get_model\n\ndef main(): get_model()\n"
    )
    target = Target({"megatron": "0.18.0"}, {"megatron": Symbols(sources / "megatron")}, {"megatron-core": "0.18.0"})
    found = {one.symbol: one.severity for one in check_pair(Project(tree), target, verl="0.8.0").findings}
    assert found == {
        "megatron.core.gone.x": "break",
        "megatron.core.parallel_state.is_stage_before_split": "break",
    }
