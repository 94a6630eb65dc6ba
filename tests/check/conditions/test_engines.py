"""Which engine rolls out in the plain job: the one that the tree is held against, and for each finding its own."""

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
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for above in path.relative_to(tmp_path / "tree").parents[:-1]:
            (tmp_path / "tree" / above / "__init__.py").touch()
    for package in ("vllm", "sglang"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text('__version__ = "0.5.12"\n')
    return tmp_path


def severities(tree: Path, *packages: str) -> dict[str, str]:
    versions = {name: {"vllm": "0.20.2", "sglang": "0.5.12"}[name] for name in packages}
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
