"""No command starts a program or imports a module because a tree holds one of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.cli.app import COMMANDS
from tests.trust.planted import Planted

LOOKING: dict[str, list[list[str]]] = {
    "demo": [["--help"]],
    "list": [[]],
    "explain": [["vllm-utils-split"]],
    "status": [[], ["--format", "json"]],
    "apply": [["--dry-run"], ["--diff"], ["--show-diff"], ["--commit"]],
    "revert": [[], ["--force"]],
    "verify": [[]],
    "record": [["--dry-run"], ["--yes"]],
    "new": [["mine", "--at", "verl/__init__.py:1"]],
    "adopt": [["--all"]],
    "backport": [["HEAD", "--dry-run"]],
    "rebase": [["HEAD", "--dry-run"]],
    "docs": [[], ["--write"]],
    "check": [["--no-since"]],
    "pins": [["--to", "vllm==0.12.0"]],
    "migrate": [["nobody@127.0.0.1:1", "--dry-run"], ["nobody@127.0.0.1:1"]],
    "diff": [["nobody@127.0.0.1:1"]],
    "pull": [["nobody@127.0.0.1:1"]],
    "prune": [["--dry-run"], ["--yes"]],
    "render": [["run.sh"], ["git_ignore.py"], ["run.sh", "--write"], ["git_ignore.py", "--write"]],
    "data": [["report"], ["report", "train.parquet"], ["tiny"]],
    "model": [["newest"], ["newest", "."], ["warm", "."]],
    "job": [["status", "here"], ["logs", "here"], ["stop", "here"]],
    "diagnose": [["train.log"], ["train.log", "--format", "json"]],
    "watch": [["train.log", "--once"]],
    "probe": [["backtrace", "--pid", "{pid}"]],
    "bundle": [["--dry-run"], ["train.log", "--yes"]],
    "clean": [["--dry-run"], ["--yes"]],
    "symptoms": [[]],
    "completion": [["bash"]],
    "trust": [["--forget"]],
}
"""By command, how it is called; what runs the tree's own code because it was asked to has a test of its own."""
HERE = ("render", "data", "model", "bundle")
"""What asks this machine what it has."""
RUNNING: dict[str, list[list[str]]] = {"run": [["debug"]], "verify": [["--level", "env", "--budget", "3"]]}


def test_every_command_is_called() -> None:
    assert set(LOOKING) | set(RUNNING) == set(COMMANDS)


def calls(table: dict[str, list[list[str]]]) -> list[list[str]]:
    return [[name, *words] for name, each in table.items() for words in each]


FIRST = [["run", "debug"], *([name, *LOOKING[name][0]] for name in HERE)]


# By `python -m patcher` the way in is another one, and what follows is the same: one call of each command.
BY_MODULE = [
    pytest.param([name, *each[0]], True, id=f"module-{name}", marks=pytest.mark.slow) for name, each in LOOKING.items()
]
# Of each command the first call in `make test`, and the others beside it in the slow lane.
BY_SCRIPT = [
    pytest.param(
        words,
        False,
        id=f"script-{' '.join(words)}",
        marks=() if words == [words[0], *LOOKING[words[0]][0]] else pytest.mark.slow,
    )
    for words in calls(LOOKING)
]


@pytest.mark.parametrize(("words", "module"), [*BY_SCRIPT, *BY_MODULE])
def test_no_program_and_no_module_of_a_tree_is_run(tmp_path: Path, words: list[str], module: bool) -> None:
    planted = Planted(tmp_path).with_modules()
    done = planted.run(*[word.replace("{pid}", "1") for word in words], module=module)
    assert planted.started == [], done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", calls({name: LOOKING[name] for name in HERE}), ids=" ".join)
def test_nor_is_that_of_an_environment_in_it(tmp_path: Path, words: list[str]) -> None:
    planted = Planted(tmp_path).with_environment()
    done = planted.run(*words)
    assert planted.started == [], done.stderr


@pytest.mark.parametrize("words", calls(RUNNING), ids=" ".join)
def test_nor_where_the_tree_s_own_code_is_run(tmp_path: Path, words: list[str]) -> None:
    planted = Planted(tmp_path).with_environment()
    done = planted.run(*words)
    assert planted.started == [], done.stderr


@pytest.mark.parametrize("python", [".venv/bin/python", "{root}/bin/python", "python3"])
@pytest.mark.parametrize("words", FIRST, ids=" ".join)
def test_nor_is_what_its_configuration_names_for_this_machine(tmp_path: Path, words: list[str], python: str) -> None:
    planted = Planted(tmp_path)
    (planted.root / "uky-patch.toml").write_text(f'[hosts.here]\npython = "{python.format(root=planted.root)}"\n')
    done = planted.run(*words)
    assert planted.started == [], done.stderr
    if "bundle" not in words:
        assert "uky-patch trust" in done.stderr


def test_an_interpreter_by_its_name_is_that_of_path(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    (planted.root / "python3.11").unlink()
    (planted.root / "python3.11/bin").mkdir(parents=True)
    for name in ("python3", "python3.11"):
        done = planted.run("status", "--python", name)
        assert planted.started == [], done.stderr


def test_with_an_empty_part_in_pythonpath(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    for name in ("click", "rich", "git"):
        (planted.root / f"{name}.py").write_text(planted.telling(name))
    done = planted.run("status", PYTHONPATH="/nowhere:")
    assert planted.started == [], done.stderr
    assert "verl 0.6.1" in done.stdout


def test_relative_environments_do_not_count(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    done = planted.run("render", "run.sh", VIRTUAL_ENV=".venv", CONDA_PREFIX="venv")
    assert planted.started == [], done.stderr


def test_an_activated_environment_counts(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    planted.run("status", VIRTUAL_ENV=str(planted.root / ".venv"))
    assert any(line.startswith(f"{planted.root}/.venv/bin/python ") for line in planted.started)


def test_a_named_interpreter_counts(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    planted.run("status", "--python", ".venv")
    assert any(line.startswith(f"{planted.root}/.venv/bin/python ") for line in planted.started)


def test_a_trusted_tree_s_environment_counts(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    assert planted.run("trust").returncode == 0
    assert planted.started == []
    planted.run("model", "newest", ".")
    assert any(line.startswith(f"{planted.root}/.venv/bin/python ") for line in planted.started)
