"""What rolls out and what trains in the plain job: what the tree is held against, and for each finding its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair

TREE = {
    "verl/trainer/main_ppo.py": "def main(config): ...\n",
    "verl/workers/rollout/vllm_rollout/__init__.py": "class ServerAdapter: ...\n",
    "verl/workers/rollout/vllm_rollout/vllm_async_server.py": "import vllm\n\nclass vLLMReplica:\n    x = vllm.gone\n",
    "verl/workers/rollout/sglang_rollout/sglang_rollout.py": "class ServerAdapter: ...\n",
    "verl/workers/rollout/sglang_rollout/async_sglang_server.py": """
import sglang


class SGLangReplica:
    x = sglang.gone

    def __init__(self, config):
        if config.rollout.name == "vllm":
            sglang.of_the_other
        if config.mtp.enable:
            sglang.of_a_feature
            if sglang.__version__ < "0.5.6":
                raise ValueError
""",
    "verl/trainer/config/ppo_trainer.yaml": "actor_rollout_ref:\n  actor:\n    strategy: fsdp\n",
    "verl/trainer/config/ppo_megatron_trainer.yaml": "actor_rollout_ref:\n  actor:\n    strategy: megatron\n",
    "verl/workers/fsdp_workers.py": "class AsyncActorRolloutRefWorker: ...\n",
    "verl/workers/megatron_workers.py": """
import megatron.core
from megatron.core import mpu


class AsyncActorRolloutRefWorker:
    x = megatron.core.gone

    def __init__(self, config):
        if config.actor.strategy == "fsdp":
            megatron.core.of_the_other
        if mpu.get_pipeline_model_parallel_world_size() > 1:
            megatron.core.of_many_stages
        if mpu.get_pipeline_model_parallel_world_size() == 1:
            megatron.core.of_one_stage
""",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for above in path.relative_to(tmp_path / "tree").parents[:-1]:
            (tmp_path / "tree" / above / "__init__.py").touch()
    for package in ("vllm", "sglang", "megatron/core"):
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text('__version__ = "0.5.12"\n')
    (tmp_path / "megatron/core/mpu.py").write_text("def get_pipeline_model_parallel_world_size(): ...\n")
    return tmp_path


def severities(tree: Path, *packages: str) -> dict[str, str]:
    versions = {name: {"vllm": "0.20.2", "sglang": "0.5.12", "megatron": "0.18.0"}[name] for name in packages}
    target = Target(versions, {name: Symbols(tree / name) for name in packages}, dict(versions))
    found = check_pair(Project(tree / "tree"), target, verl="0.8.0").findings
    return {one.symbol: one.severity for one in found}


def test_what_the_tree_is_held_against_rolls_out(tree: Path) -> None:
    assert severities(tree, "vllm") == {"vllm.gone": "break"}
    found = severities(tree, "sglang")
    assert found["sglang.gone"] == "break"
    assert found["sglang.of_the_other"] != "break"
    assert found["sglang.of_a_feature"] == "optional"


def test_with_both_each_finding_is_rated_by_its_own_engine(tree: Path) -> None:
    found = severities(tree, "vllm", "sglang")
    assert (found["vllm.gone"], found["sglang.gone"]) == ("break", "break")


def test_a_version_that_is_compared_as_text_within_a_feature_is_no_break(tree: Path) -> None:
    assert severities(tree, "sglang")["sglang.__version__"] == "optional"


def test_what_is_found_of_megatron_is_rated_by_the_job_that_trains_with_it(tree: Path) -> None:
    found = severities(tree, "vllm", "megatron")
    assert found["vllm.gone"] == "break"
    assert found["megatron.core.gone"] == "break"
    assert found["megatron.core.of_the_other"] == "optional"


def test_a_pipeline_has_one_stage(tree: Path) -> None:
    found = severities(tree, "megatron")
    assert found["megatron.core.of_many_stages"] == "optional"
    assert found["megatron.core.of_one_stage"] == "break"
