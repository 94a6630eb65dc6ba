"""Environment variables that Python sets, and the flags that it puts together."""

from __future__ import annotations

import ast
import textwrap

import pytest

from patcher.analysis.reading import read_file
from patcher.analysis.reading.settings import environment_uses
from patcher.analysis.uses import Context, EngineFlag, EnvironmentVariable, FileFacts
from patcher.packages.releases import sources
from tests.check.written import written


def variables(code: str) -> list[tuple[int, str, str | None]]:
    content = textwrap.dedent(code).encode()
    uses = environment_uses(content, ast.parse(content), "a.py", lambda _: Context())
    return [(u.line, u.need.name, u.need.value) for u in uses if isinstance(u.need, EnvironmentVariable)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('os.environ["VLLM_A"] = "1"', [(1, "VLLM_A", "1")]),
        ('os.environ["VLLM_A"] = str(port)', [(1, "VLLM_A", None)]),
        ('os.environ.setdefault("VLLM_A", "x")', [(1, "VLLM_A", "x")]),
        ('os.environ.update({\n  "VLLM_A": "1",\n  "VLLM_B": b})', [(2, "VLLM_A", "1"), (3, "VLLM_B", None)]),
        ('os.environ.update(VLLM_A="1")', [(1, "VLLM_A", "1")]),
        ('os.putenv("VLLM_A", "1")  # environ', [(1, "VLLM_A", "1")]),
        ('monkeypatch.setenv("VLLM_A", "1")', [(1, "VLLM_A", "1")]),
        ('ray.init(runtime_env={"env_vars": {"VLLM_A": "1"}})', [(1, "VLLM_A", "1")]),
        ('RUNTIME_ENV = {"env_vars": {\n  "VLLM_A": "1",\n}}', [(2, "VLLM_A", "1")]),
        ('subprocess.run(cmd, env={**os.environ, "VLLM_A": "1"})', [(1, "VLLM_A", "1")]),
        ('runtime_env["env_vars"]["VLLM_A"] = "1"', [(1, "VLLM_A", "1")]),
        ('NAME = "VLLM_A"\nos.environ[NAME] = "1"', [(2, "VLLM_A", "1")]),
        (
            'for key in ("VLLM_A", "VLLM_B"):\n    os.environ[key] = "1"\nfor key in ("VLLM_C",):\n    env(key)',
            [(1, "VLLM_A", None), (1, "VLLM_B", None)],
        ),
        ('os.environ.get("VLLM_A")', []),
        ('os.getenv("VLLM_A")\nos.environ["VLLM_A"]', []),
        ('"VLLM_A" in os.environ', []),
        ('os.environ.pop("VLLM_A", None)', []),
        ('config["VLLM_A"] = 1  # environ', []),
    ],
)
def test_setting_is_a_use_and_reading_is_not(code: str, expected: list[tuple[int, str, str | None]]) -> None:
    assert sorted(variables(code)) == expected


def facts(verl: str, file: str) -> FileFacts:
    return read_file((sources("verl", verl) / file).read_bytes(), file)


@pytest.mark.network
def test_the_variables_of_a_real_runtime_environment() -> None:
    found = facts("0.9.1", "verl/trainer/constants_ppo.py").uses
    names = {(use.line, use.need.name) for use in found if isinstance(use.need, EnvironmentVariable)}
    assert {(89, "VLLM_LOGGING_LEVEL"), (141, "VLLM_BATCH_INVARIANT")} <= names


SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"


@pytest.mark.network
@pytest.mark.parametrize(("verl", "line"), [("0.6.1", 206), ("0.7.0", 249), ("0.7.1", 220), ("0.8.0", 220)])
def test_a_flag_under_a_condition_is_found_with_it(verl: str, line: int) -> None:
    found = [use for use in facts(verl, SERVER).uses if use.need == EngineFlag("cuda_graph_sizes", option=True)]
    assert [use.line for use in found] == [line]
    tests = [written(c.test) for c in found[0].context.conditions if hasattr(c, "test")]
    assert "self.config.cudagraph_capture_sizes" in tests
    assert found[0].context.function.endswith("launch_server")


@pytest.mark.network
@pytest.mark.parametrize("verl", ["0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"])
def test_the_flags_of_the_server_are_those_that_its_dicts_spell(verl: str) -> None:
    names = {use.need.name for use in facts(verl, SERVER).uses if isinstance(use.need, EngineFlag)}
    assert {"dtype", "max_model_len", "tensor_parallel_size", "data_parallel_rpc_port"} <= names
    assert "skip_tokenizer_init" not in names  # False: left off the command line
    assert not names & {"temperature", "image", "activation_scheme", "enable_log_requests", "top_k"}


@pytest.mark.network
def test_arguments_for_another_engine_are_not_vllms() -> None:
    found = facts("0.7.0", "verl/workers/rollout/sglang_rollout/async_sglang_server.py").uses
    assert not [use for use in found if isinstance(use.need, EngineFlag)]


def test_options_that_are_spelled_out_in_a_command() -> None:
    code = b'import subprocess\ncmd = ["vllm", "serve", path, "--swap-space", "4"]\ncmd += ["--dtype=half"]\n'
    uses = read_file(code, "verl/a.py").uses
    flags = [(use.line, use.need.name) for use in uses if isinstance(use.need, EngineFlag)]
    assert flags == [(2, "swap_space"), (3, "dtype")]
