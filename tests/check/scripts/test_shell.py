"""What shell scripts set and run: read as the shell reads them, and never run."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from patcher.analysis.uses import ConfigKey, EngineFlag, EnvironmentVariable
from patcher.check.scripts.files import script_uses
from patcher.check.scripts.shell import Command, commands
from tests import tools


def uses(text: str, file: str = "run.sh") -> list[tuple[int, object]]:
    found, notes = script_uses(file, textwrap.dedent(text).lstrip("\n"))
    assert not notes
    return [(use.line, use.need) for use in found]


def variables(text: str) -> list[tuple[int, str, str | None]]:
    return [(line, need.name, need.value) for line, need in uses(text) if isinstance(need, EnvironmentVariable)]


def keys(text: str) -> list[tuple[int, str]]:
    return [(line, need.sign + need.dotted) for line, need in uses(text) if isinstance(need, ConfigKey) and need.dotted]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export VLLM_A=1  # why", [(1, "VLLM_A", "1")]),
        ("# export VLLM_A=1", []),
        ("echo 'export VLLM_A=1'", []),
        ("VLLM_A=1", []),
        ("VLLM_A=1\nexport VLLM_A", [(2, "VLLM_A", "1")]),
        ("export VLLM_A=1 VLLM_B='x y'", [(1, "VLLM_A", "1"), (1, "VLLM_B", "x y")]),
        ("export VLLM_A=$HOME/x", [(1, "VLLM_A", None)]),
        ("R=/data\nexport VLLM_A=$R/x", [(2, "VLLM_A", "/data/x")]),
        ("declare -x VLLM_A=1", [(1, "VLLM_A", "1")]),
        ("VLLM_A=1 VLLM_B=2 python a.py", [(1, "VLLM_A", "1"), (1, "VLLM_B", "2")]),
        ("env -u X VLLM_A=1 python a.py VLLM_B=2", [(1, "VLLM_A", "1")]),
        ("if true; then\n  export VLLM_A=1\nfi", [(2, "VLLM_A", "1")]),
        ("true && export VLLM_A=1 || exit 1", [(1, "VLLM_A", "1")]),
        ("docker run -e VLLM_A=1 --env VLLM_B=2 image", [(1, "VLLM_A", "1"), (1, "VLLM_B", "2")]),
        ("srun --export=ALL,VLLM_A=1 bash x.sh", [(1, "VLLM_A", "1")]),
        ("ssh host 'export VLLM_A=1; python a.py'", [(1, "VLLM_A", "1")]),
        ("bash <<'END'\nexport VLLM_A=1\nEND\nexport VLLM_B=1", [(2, "VLLM_A", "1"), (4, "VLLM_B", "1")]),
        ("cat <<END\nexport VLLM_A=1\nEND", []),
        ('cat > env.yaml <<END\nenv_vars:\n  VLLM_A: "1"\nEND', [(3, "VLLM_A", "1")]),
        ('ray job submit --runtime-env-json=\'{"env_vars": {"VLLM_A": "1"}}\' -- x', [(1, "VLLM_A", "1")]),
    ],
)
def test_variables(text: str, expected: list[tuple[int, str, str | None]]) -> None:
    assert variables(text) == expected


def test_overrides_of_a_command_over_many_lines() -> None:
    text = """
        python3 -m verl.trainer.main_ppo \\
            --config-name='ppo_megatron_trainer.yaml' \\
            data.train_files="['$HOME/a.parquet']" \\
            +actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space=4 \\
            trainer.logger='["console","wandb"]' \\
            ~trainer.device "$@" 2>&1 | tee run.log
    """
    found = uses(text)
    assert keys(text) == [
        (3, "data.train_files"),
        (4, "+actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"),
        (5, "trainer.logger"),
        (6, "~trainer.device"),
    ]
    assert (4, EngineFlag("swap_space")) in found
    configs = {(need.entry, need.config) for _, need in found if isinstance(need, ConfigKey)}
    assert configs == {("verl.trainer.main_ppo", "ppo_megatron_trainer")}


def test_overrides_from_arrays_and_variables_stand_where_they_are_written() -> None:
    text = """
        ENGINE=${1:-vllm}
        DATA=(
            data.train_batch_size=64   # rows
            "data.val_files=$HOME/b"
        )
        DATA+=(data.image_key=images)
        if [ "$ENGINE" = vllm ]; then
            MORE="trainer.a=1 +trainer.b=2"
        else
            MORE=trainer.c=3
        fi
        LAUNCH=(python3)
        "${LAUNCH[@]}" -m verl.trainer.main_ppo "${DATA[@]}" $MORE
    """
    assert keys(text) == [
        (3, "data.train_batch_size"),
        (4, "data.val_files"),
        (6, "data.image_key"),
        (8, "trainer.a"),
        (8, "+trainer.b"),
        (10, "trainer.c"),
    ]


def test_a_comment_ends_a_command_whatever_its_last_character() -> None:
    text = "python3 -m verl.trainer.main_ppo \\\n  trainer.a=1 \\\n  # trainer.b=2 \\\n  trainer.c=3\n"
    assert keys(text) == [(2, "trainer.a")]


def test_what_a_variable_hides_is_kept_as_a_question() -> None:
    text = "python3 -m verl.trainer.main_ppo ${PREFIX}.lr=1 $EXTRA trainer.x=$Y"
    assert keys(text) == [(1, "${PREFIX}.lr"), (1, "trainer.x"), (1, "${EXTRA}")]


def test_the_program_is_found_behind_launchers_and_by_its_path() -> None:
    for start in (
        "torchrun --nproc-per-node=8 -m verl.trainer.sft_trainer",
        "nohup python3 verl/trainer/sft_trainer.py",
    ):
        (need,) = [need for _, need in uses(f"{start} data.x=1") if isinstance(need, ConfigKey) and need.dotted]
        assert need.entry == "verl.trainer.sft_trainer"
    assert not uses("python3 -m other.train lr=1")


def test_flags_of_the_server() -> None:
    text = "vllm serve $MODEL --swap-space 4 -tp 2 --compilation-config.level=3 \\\n  --no-enable-prefix-caching"
    assert [(line, need.name) for line, need in uses(text) if isinstance(need, EngineFlag)] == [
        (1, "swap_space"),
        (1, "tp"),
        (1, "compilation_config.level"),
        (2, "no_enable_prefix_caching"),
    ]


def test_where_a_script_breaks_off_is_told_and_what_stood_before_is_kept() -> None:
    found, notes = script_uses("run.sh", 'export VLLM_A=1\necho "never closed\nexport VLLM_B=1\n')
    assert [use.line for use in found] == [1]
    assert [str(note) for note in notes] == ["run.sh is not understood from line 2 on"]


BASH = tools.find("bash")


@tools.needs("bash")
@pytest.mark.parametrize(
    "line",
    [
        "a 'b c' \"d e\" f\\ g",
        "a=1 show b",
        "show a # b",
        "show a#b",
        "show 'a'\"b\"c",
        'show "a\\"b" \'c"d\'',
        "show $'a b'",
        "X='p q'; show $X \"$X\"",
        'A=(p "q r"); A+=(s); show "${A[@]}"',
        "show ${UNSET:-x y}",
        'show "${UNSET:-x y}"',
        "show a \\\n  b",
        "show a 2>/dev/null b",
        "show a >/dev/null; show b",
        "{ show a; }",
        "if true; then show a; fi",
        "show a && show b; show c",
        "show <<END x\nshow y\nEND\nshow z",
        "show k=['a','b'] l={x:1}",
    ],
)
def test_words_are_those_that_bash_passes(line: str, tmp_path: Path) -> None:
    script = (
        f'show() {{ for one in "$@"; do printf \'%s\\n\' "$one" >> {tmp_path}/out; done; }}\na() {{ show "$@"; }}\n'
    )
    assert BASH is not None
    subprocess.run([BASH, "-c", script + line], check=True, cwd=tmp_path)
    wanted = (tmp_path / "out").read_text().splitlines()
    found = [
        field.text
        for command in commands(line)
        if isinstance(command, Command) and command.words and command.words[0].text in ("show", "a")
        for field in command.words[1:]
    ]
    assert found == wanted
