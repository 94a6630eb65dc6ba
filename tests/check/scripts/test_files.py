"""yaml, launchers, environment files, and how globs find them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from patcher.analysis.uses import ConfigKey, EngineFlag, EnvironmentVariable
from patcher.check.scripts.files import script_uses, uses_of_scripts
from patcher.errors import UsageError


def needs(file: str, text: str) -> list[tuple[int, str]]:
    found, notes = script_uses(file, textwrap.dedent(text).lstrip("\n"))
    assert not notes
    names = []
    for use in found:
        match use.need:
            case EnvironmentVariable(name=name):
                names.append((use.line, name))
            case EngineFlag(name=name):
                names.append((use.line, f"--{name}"))
            case ConfigKey(dotted=dotted, sign=sign) if dotted:
                names.append((use.line, sign + dotted))
            case _:
                pass
    return sorted(names)


def test_a_ray_runtime_environment() -> None:
    text = """
        working_dir: ./
        env_vars:
          VLLM_USE_V1: "1"
          TORCH_NCCL_AVOID_RECORD_STREAMS: "1"
    """
    assert needs("runtime_env.yaml", text) == [(3, "VLLM_USE_V1"), (4, "TORCH_NCCL_AVOID_RECORD_STREAMS")]


def test_a_pod_with_a_command() -> None:
    text = """
        spec:
          containers:
            - name: train
              env:
                - name: VLLM_USE_V1
                  value: "1"
              command: ["python3", "-m", "verl.trainer.main_ppo", "trainer.x=1"]
            - name: serve
              args:
                - |
                  export VLLM_A=1
                  vllm serve m --swap-space 4
    """
    assert needs("pod.yml", text) == [(5, "VLLM_USE_V1"), (7, "trainer.x"), (11, "VLLM_A"), (12, "--swap_space")]


def test_a_config_file_for_verl() -> None:
    text = """
        defaults: [ppo_trainer, _self_]
        actor_rollout_ref:
          rollout:
            engine_kwargs:
              vllm:
                swap_space: 4
        trainer:
          nnodes: 2
    """
    assert needs("mine.yaml", text) == [
        (6, "++actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"),
        (6, "--swap_space"),
        (8, "++trainer.nnodes"),
    ]


def test_a_launcher_in_python() -> None:
    text = """
        import os, subprocess
        os.environ["VLLM_USE_V1"] = "1"
        subprocess.run(["python3", "-m", "verl.trainer.main_ppo", f"data.train_files={x}", "+trainer.y=1"])
        os.system("VLLM_A=1 vllm serve m --swap-space 4")
    """
    assert needs("launch.py", text) == [
        (2, "VLLM_USE_V1"),
        (3, "+trainer.y"),
        (3, "data.train_files"),
        (4, "--swap_space"),
        (4, "VLLM_A"),
    ]


def test_environment_files_and_images() -> None:
    assert needs(".env", "# VLLM_B=1\nVLLM_A=1\n") == [(2, "VLLM_A")]
    assert needs("Dockerfile", "FROM x\nENV VLLM_A=1 \\\n    VLLM_B=2\nENV VLLM_C 3\n") == [
        (2, "VLLM_A"),
        (3, "VLLM_B"),
        (4, "VLLM_C"),
    ]


def test_globs_find_files_and_tell_what_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "examples/deep").mkdir(parents=True)
    (tmp_path / "examples/deep/run.sh").write_text("export VLLM_USE_V1=1\n")
    (tmp_path / "examples/bad.sh").write_bytes(b"export A=\xff\xfe\n")
    (tmp_path / "examples/odd.bin").write_text("x")
    (tmp_path / "examples/broken.yaml").write_text("a: [\n")
    found, notes = uses_of_scripts(tmp_path, ["examples/**/*"])
    assert [(use.file, use.line) for use in found] == [("examples/deep/run.sh", 1)]
    told = sorted(str(note).partition(":")[0] for note in notes)
    assert told == [
        "examples/bad.sh cannot be read",
        "examples/broken.yaml is not understood from line 2 on",
        "examples/odd.bin is not a kind of script that is read",
    ]


@pytest.mark.parametrize("pattern", ["nothing/*.sh", "", "[", "examples", "/nowhere/**/*.sh"])
def test_a_glob_that_matches_no_file_is_an_error(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "run.sh").write_text("export VLLM_USE_V1=1\n")
    with pytest.raises(UsageError) as caught:
        uses_of_scripts(tmp_path, ["*.sh", pattern])
    assert repr(pattern) in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_an_absolute_glob_names_files_outside_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "run.sh").write_text("export VLLM_USE_V1=1\n")
    found, notes = uses_of_scripts(tmp_path / "tree", [str(tmp_path / "*.sh")])
    assert [use.file for use in found] == [str(tmp_path / "run.sh")]
    assert not notes


def test_folder_stands_for_the_scripts_and_settings_in_it(tmp_path: Path) -> None:
    line = "export VLLM_{}=1\n"
    for number, name in enumerate(("run.sh", "a/b/go.slurm", "conf/prod.env", ".venv/bin/activate.sh", "notes.txt")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(line.format(number))
    for folder, files in ((".", {"run.sh", "a/b/go.slurm", "conf/prod.env"}), ("a", {"a/b/go.slurm"})):
        found, _ = uses_of_scripts(tmp_path, [folder])
        assert {use.file for use in found} == files


def test_configs_beside_those_of_the_tree_are_not_looked_into() -> None:
    text = """
        python3 -m verl.trainer.main_ppo actor@actor_rollout_ref.actor=lite hydra.searchpath=[pkg://lite.config]
    """
    found, _ = script_uses("run.sh", textwrap.dedent(text).lstrip("\n"))
    configs = {use.need.config for use in found if isinstance(use.need, ConfigKey)}
    assert configs == {"[pkg://lite.config]/(default)"}
