"""Which environment counts: nothing is written for one that nobody has named and that cannot train."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import Answer, Uky, write_tree

NAME_IT = "name the interpreter that trains: --python, or python = in uky-patch.toml"


@pytest.fixture
def own(tree: Path, records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Uky:
    """A command on the tree with nothing activated and nothing assumed but what is given."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tree.parent / "state"))

    def call(*arguments: str) -> Answer:
        code = run(["--root", str(tree), "--patches", str(records), *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def environment(folder: Path, **packages: str) -> Path:
    """A virtual environment whose metadata says these packages; its interpreter tells that it was run, and fails."""
    site = folder / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    python = folder / "bin/python"
    python.write_text(f"#!/bin/sh\ntouch {folder}/ran\nexit 1\n")
    python.chmod(0o755)
    for name, version in packages.items():
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
        (site / f"{name}-{version}.dist-info").mkdir()
        (site / f"{name}-{version}.dist-info/METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    return python


def content(tree: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        ["apply"],
        ["apply", "--dry-run"],
        ["apply", "log-flag"],
        ["apply", "--diff"],
        ["render", "run.sh", "--write"],
        ["render", "git_ignore.py", "--write"],
        ["run", "debug"],
    ],
    ids=" ".join,
)
def test_nothing_is_written_for_an_environment_that_nobody_named(own: Uky, tree: Path, words: list[str]) -> None:
    before = content(tree)
    answer = own(*words)
    assert (answer.code, answer.out) == (2, "")
    assert "it is not known which environment trains" in answer.err
    assert NAME_IT in answer.err
    assert content(tree) == before
    assert own("--format", "json", *words).json["error"]["code"] == 2


def test_status_leads_with_it(own: Uky) -> None:
    answer = own("status")
    assert answer.code == 1
    assert answer.out.startswith("note: it is not known which environment trains")
    assert answer.out.rstrip().endswith(f"Next: {NAME_IT}")
    told = own("status", "--format", "json").json["environment"]
    assert told == {"python": sys.executable, "chosen_by": "default", "known": False, "advice": NAME_IT}


def test_verify_is_not_green_and_sends_nobody_to_apply(own: Uky) -> None:
    answer = own("verify")
    assert answer.code == 1
    checks = own("verify", "--format", "json").json["checks"]
    assert (checks[0]["name"], checks[0]["status"], checks[0]["fix"]) == ("environment", "fail", NAME_IT)
    assert not any(check["fix"] == "uky-patch apply" for check in checks)


@pytest.mark.parametrize("assumed", ["vllm==2.1", "vllm==none", "torch==2.9.0"])
def test_a_version_that_is_assumed_goes_on(own: Uky, assumed: str) -> None:
    assert own("apply", "--assume", assumed).code == 0
    assert own("status", "--assume", assumed).code == 0
    assert own("verify", "--assume", assumed).code == 0


def test_an_activated_environment_without_vllm_and_torch_is_none(
    own: Uky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment(tmp_path / "env", verl="0.6.1")
    monkeypatch.setenv("VIRTUAL_ENV", str(python.parents[1]))
    assert own("apply").code == 2
    assert own("status", "--format", "json").json["environment"]["chosen_by"] == "activation"
    assert own("apply", "--python", str(python)).code == 0
    named = own("status", "--python", str(python))
    assert (named.code, "neither vllm nor torch is installed under" in named.out) == (0, True)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(tmp_path / "other", vllm="2.1").parents[1]))
    assert own("status").code == 1  # Both records are needed there.
    assert own("apply").code == 0


def test_what_needs_no_environment_goes_on(own: Uky) -> None:
    assert own("list").code == 0
    assert own("explain", "log-flag").code == 0
    assert own("check", "--against", "vllm==none").code in (0, 1)
    assert own("revert").code == 0
    assert own("render", "git_ignore.py").code == 0


@pytest.mark.parametrize("written", ["env/bin/python", "env", "{folder}/env/bin/python", "../fork/env", "~/e"])
def test_the_tree_names_it(own: Uky, tree: Path, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(tree / "env", vllm="2.1")
    monkeypatch.setenv("HOME", str(tree))
    (tree / "e").symlink_to("env")
    (tree / "uky-patch.toml").write_text(f'python = "{written.format(folder=tree)}"\n')
    monkeypatch.chdir("/")
    told = own("status", "--format", "json").json
    assert (told["environment"]["chosen_by"], told["environment"]["known"]) == ("settings", True)
    assert told["versions"]["vllm"] == "2.1"
    assert own("apply").code == 0
    assert own("status").code == 0
    assert not (python.parents[1] / "ran").exists()


def test_it_comes_before_what_is_activated_and_after_the_option(
    own: Uky, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, third = environment(tmp_path / "other", vllm="1.0"), environment(tmp_path / "third", vllm="1.5")
    environment(tree / "env", vllm="2.1")
    (tree / "uky-patch.toml").write_text('python = "env"\n')
    monkeypatch.setenv("VIRTUAL_ENV", str(other.parents[1]))
    assert own("status", "--format", "json").json["versions"]["vllm"] == "2.1"
    assert own("status", "--format", "json", "--python", str(third)).json["versions"]["vllm"] == "1.5"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("nowhere/python", "no interpreter at"),
        ("verl", "no interpreter in"),
        ("verl/__init__.py", "may not be run"),
        ("odd.sh", "its files do not tell"),
        ("pipe", "may not be run"),
    ],
)
def test_one_that_is_none_is_one_error_with_its_line(own: Uky, tree: Path, written: str, told: str) -> None:
    (tree / "odd.sh").write_text("#!/bin/sh\ntouch ran\n")
    (tree / "odd.sh").chmod(0o755)
    os.mkfifo(tree / "pipe", 0o600)
    (tree / "uky-patch.toml").write_text(f'marker = "Uky"\npython = "{written}"\n')
    before = content(tree.joinpath("verl"))
    for words in (["status"], ["apply"], ["verify"]):
        answer = own(*words)
        assert answer.code == 4
        assert answer.err.count("error: ") == 1
        assert "uky-patch.toml:2: python names no interpreter that can be used" in answer.err
        assert told in answer.err
    assert own("list").code == 0
    assert own("status", "--python", sys.executable).code in (0, 1)
    assert content(tree / "verl") == before
    assert not (tree / "ran").exists()


@pytest.mark.parametrize("written", ['""', "3", '"a\\nb"', '"~nobody-of-that-name/x"'])
def test_what_cannot_be_a_path_is_a_mistake_in_the_file(own: Uky, tree: Path, written: str) -> None:
    (tree / "uky-patch.toml").write_text(f"python = {written}\n")
    answer = own("status")
    assert answer.code == 4
    assert "uky-patch.toml:1: python: " in answer.err


@pytest.mark.parametrize(
    "words", [["run", "debug"], ["verify", "--level", "env"], ["render", "run.sh", "--write"]], ids=" ".join
)
def test_to_run_it_takes_trust(own: Uky, tree: Path, words: list[str]) -> None:
    python = environment(tree / "env", vllm="2.1")
    (tree / "uky-patch.toml").write_text('python = "env"\n')
    answer = own(*words)
    assert (answer.code, "uky-patch trust" in answer.err) == (2, True)
    assert not (python.parents[1] / "ran").exists()


def test_once_trusted_it_is_run(own: Uky, tree: Path) -> None:
    environment(tree / "env", vllm="2.1")
    (tree / "uky-patch.toml").write_text('python = "env"\n')
    assert own("trust").code == 0
    own("verify", "--level", "env", "--budget", "5")
    assert (tree / "env/ran").exists()


def test_a_tree_without_records_of_its_own_refuses_too(own: Uky, tmp_path: Path) -> None:
    other = write_tree(tmp_path / "other")
    (other / "verl/version/version").write_text("0.6.1\n")
    assert own("--root", str(other), "apply").code == 2
