"""Variables that released versions of vLLM read, and that they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.analysis.findings import Broken, Fine, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.analysis.uses import EnvironmentVariable, Use
from patcher.check.pair import judge
from patcher.check.rules.variables import judge_variable, variables_of

pytestmark = pytest.mark.network
Make = Callable[[str, str], Program]


def asked(program: Program, name: str, baseline: Program | None = None) -> Verdict:
    return judge_variable(Use("run.sh", 3, EnvironmentVariable(name, "1")), program, baseline)


@pytest.mark.parametrize(
    ("name", "last", "first_without"),
    [
        ("VLLM_ATTENTION_BACKEND", "0.14.1", "0.15.0"),
        ("VLLM_USE_V1", "0.11.0", "0.11.1"),
        ("VLLM_USE_TRITON_FLASH_ATTN", "0.11.0", "0.11.1"),
        ("VLLM_TORCH_PROFILER_DIR", "0.15.1", "0.16.0"),
        ("VLLM_ALL2ALL_BACKEND", "0.15.1", "0.16.0"),
    ],
)
def test_a_removed_variable_is_found_from_the_release_that_dropped_it(
    program: Make, name: str, last: str, first_without: str
) -> None:
    assert asked(program("0.7.0", last), name) == Fine(f"vllm.envs.{name}")
    verdict = asked(program("0.7.0", first_without), name)
    assert isinstance(verdict, Broken)
    (problem,) = verdict.problems
    assert (problem.kind, problem.symbol, problem.line) == ("env-removed", f"vllm.envs.{name}", 3)


def test_what_to_use_instead_comes_from_the_settings_in_both_languages(program: Make) -> None:
    verdict = asked(program("0.7.0", "0.20.2"), "VLLM_ATTENTION_BACKEND")
    assert isinstance(verdict, Broken)
    suggestion = verdict.problems[0].suggestion
    assert suggestion is not None
    assert "engine_kwargs.vllm.attention_backend" in str(suggestion)
    assert "改用" in suggestion.render("zh")


def test_a_variable_that_never_was_is_unknown_not_removed(program: Make) -> None:
    for version in ("0.9.0", "0.20.2", "0.33.0"):
        verdict = asked(program("0.7.0", version), "VLLM_WORKER_USE_RAY")
        assert isinstance(verdict, Broken)
        assert verdict.problems[0].kind == "env-unknown"


def test_an_earlier_release_tells_removed_from_unknown(program: Make) -> None:
    name, target = "VLLM_TORCH_PROFILER_WITH_STACK", program("0.7.0", "0.20.2")
    alone, informed = asked(target, name), asked(target, name, program("0.7.0", "0.12.0"))
    assert isinstance(alone, Broken)
    assert isinstance(informed, Broken)
    assert (alone.problems[0].kind, informed.problems[0].kind) == ("env-unknown", "env-removed")


@pytest.mark.parametrize("name", ["VLLM_ASCEND_ENABLE_NZ", "VERL_VLLM_ZMQ_ADDRESSES", "NCCL_TIMEOUT", "HF_HOME"])
def test_other_packages_variables_are_no_use_of_vllm(program: Make, name: str) -> None:
    assert asked(program("0.7.0", "0.20.2"), name) == Unrelated()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("VLLM_BATCH_INVARIANT", "0.12.0"),  # os.getenv in a kernel, not in the registry
        ("VLLM_BATCH_INVARIANT", "0.11.1"),  # through a constant
        ("VLLM_SKIP_WARMUP", "0.9.0"),  # over two lines
        ("VLLM_USE_AOT_COMPILE", "0.20.2"),  # its value is computed by a function
    ],
)
def test_a_variable_read_anywhere_in_the_package_is_known(program: Make, name: str, version: str) -> None:
    assert asked(program("0.7.0", version), name) == Fine(f"vllm.envs.{name}")


@pytest.mark.parametrize("version", ["0.9.0", "0.11.1", "0.20.2", "0.28.0", "0.33.0"])
def test_the_registry_is_read_whatever_its_shape(program: Make, version: str) -> None:
    names = variables_of(program("0.7.0", version).target.packages["vllm"])
    assert len(names) > 110
    assert {"VLLM_LOGGING_LEVEL", "VLLM_PORT", "VLLM_HOST_IP", "VLLM_CACHE_ROOT"} <= names


def test_what_compiled_code_may_read_stays_undecided(tmp_path: Path) -> None:
    package = tmp_path / "ray"
    package.mkdir()
    (package / "__init__.py").write_text('import os\nHOST = os.environ.get("RAY_ADDRESS")\n')
    program = Program(Project(tmp_path), Target({"ray": "2.55.1"}, {"ray": Symbols(package)}), judge)
    assert asked(program, "RAY_ADDRESS") == Fine("ray.RAY_ADDRESS")
    assert isinstance(asked(program, "RAY_worker_register_timeout_seconds"), Undecided)
