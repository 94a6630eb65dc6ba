"""render: shown, compared and put; here and on a real host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from tests.machines import Machine

UNTOUCHED = "run_debug.sh"


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = tmp_path / "fork"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/__init__.py").touch()
    (root / "verl/version/version").write_text("0.7.0\n")
    return root


class Uky:
    def __init__(self, fork: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._fork, self._capfd = fork, capfd
        self.err = ""

    def __call__(self, *arguments: str) -> tuple[int, str]:
        shared = ["--root", str(self._fork), "--assume", "vllm==0.20.2"]
        shared += [] if "--host" in arguments else ["--python", sys.executable]
        code = run([*shared, *arguments])
        captured = self._capfd.readouterr()
        self.err = captured.err
        return code, captured.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self("--format", "json", *arguments)[1])


@pytest.fixture
def uky(fork: Path, capfd: pytest.CaptureFixture[str]) -> Uky:
    return Uky(fork, capfd)


def test_printing_writes_nothing(uky: Uky, fork: Path) -> None:
    before = sorted(fork.rglob("*"))
    code, out = uky("render", UNTOUCHED)
    assert code == 0
    assert out.startswith("#!/usr/bin/env bash\n")
    assert f"python={sys.executable}\n" in out
    assert "VLLM_ATTENTION_BACKEND left out: vllm 0.20.2 ignores it" in uky.err
    assert sorted(fork.rglob("*")) == before


def test_what_is_kept_about_a_written_file_is_not_shown_by_git(uky: Uky, fork: Path) -> None:
    """Neither before the first apply nor after a revert of it, which leaves nothing else in that folder."""
    subprocess.run(["git", "init", "-q"], cwd=fork, check=True)

    def untracked() -> list[str]:
        listing = ["git", "ls-files", "--others", "--exclude-standard"]
        return subprocess.run(listing, cwd=fork, check=True, capture_output=True, text=True).stdout.split()

    before = untracked()
    assert uky("render", UNTOUCHED, "--write")[0] == 0
    assert untracked() == sorted([*before, UNTOUCHED])
    assert uky("apply", "versions-at-import", "--allow-dirty")[0] == 0
    assert uky("revert")[0] == 0
    assert untracked() == sorted([*before, UNTOUCHED])


def test_write_then_diff_then_an_edit(uky: Uky, fork: Path) -> None:
    assert uky("render", UNTOUCHED, "--diff")[0] == 1
    assert uky("render", UNTOUCHED, "--write") == (0, "run_debug.sh: written\n")
    assert uky("render", UNTOUCHED, "--diff") == (0, "")
    assert uky("render", UNTOUCHED, "--write") == (0, "run_debug.sh: unchanged\n")
    code, out = uky("render", UNTOUCHED, "--diff", "--set", "triton_cache=/shared/triton")
    assert code == 1
    assert "+export TRITON_CACHE_DIR=/shared/triton" in out
    assert uky("render", UNTOUCHED, "--write", "--set", "triton_cache=/shared/triton")[1] == "run_debug.sh: updated\n"
    script = fork / UNTOUCHED
    script.write_text(script.read_text().replace("set -euo", "set -xeuo"))
    code, out = uky("render", UNTOUCHED, "--write")
    assert code == 1
    assert "edited by hand" in out
    assert "-set -xeuo pipefail" in out
    assert "set -xeuo" in script.read_text()


def test_run_sh_is_the_script_of_the_profile(uky: Uky) -> None:
    assert "run_debug.sh:" in uky("render", "run.sh")[1].splitlines()[1]
    assert "run_fast_load.sh:" in uky("render", "run.sh", "--profile", "fast-load")[1].splitlines()[1]


def test_settings_go_where_they_belong(uky: Uky) -> None:
    sets = ["--set", "trainer.total_epochs=3", "--set", "+data.x=1", "--set", "MY_VAR=a b", "--set", "data=/d d"]
    out = uky("render", "run_standard.sh", *sets)[1]
    assert "  trainer.total_epochs=3 \\\n" in out
    assert "  +data.x=1 \\\n" in out
    assert "export MY_VAR='a b'\n" in out
    assert "\"DATA_OUTPUT_DIR\", '/d d'" in out
    assert "LLAMA = Path('/x')" in uky("render", "git_ignore.py", "--set", "LLAMA=/x")[1]


def test_json_has_text_diff_and_notes_in_english(uky: Uky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    answer = uky.json("render", UNTOUCHED, "--set", "X=数")
    assert answer["file"] == UNTOUCHED
    assert answer["written"] == []
    assert "export X='数'" in answer["text"]
    assert answer["diff"].startswith("--- a/run_debug.sh")
    assert any(note.startswith("VLLM_ATTENTION_BACKEND left out") for note in answer["notes"])
    assert uky.json("render", UNTOUCHED, "--write")["written"] == [UNTOUCHED]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing.sh"],
        ["../run_debug.sh"],
        ["/etc/passwd"],
        [""],
        [UNTOUCHED, "--set", "x"],
        [UNTOUCHED, "--set", "x=1"],
        [UNTOUCHED, "--set", "=1"],
        [UNTOUCHED, "--set", "A;B=1"],
        [UNTOUCHED, "--host", "-oProxyCommand=touch x"],
        [UNTOUCHED, "--host", "a;b"],
        [UNTOUCHED, "--host", ""],
    ],
)
def test_what_cannot_be_meant(uky: Uky, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = uky("render", *arguments)
    assert (code, out) == (2, "")
    assert uky.err
    assert not (tmp_path / "x").exists()


def test_a_bad_profile_value_ends_with_4(uky: Uky) -> None:
    for value in ("output=/${x}", "data=relative", "models=~root/x"):
        code, out = uky("render", UNTOUCHED, "--set", value)
        assert code in (2, 4), value
        assert out == ""


def test_a_secret_is_not_written(uky: Uky, fork: Path) -> None:
    (fork / "uky-patch.toml").write_text('[hosts.here]\nenv = { HF_TOKEN = "hf_s3cr3t", A = "b" }\n')
    for name in ("run_standard.sh", "git_ignore.py"):
        assert "s3cr3t" not in uky("render", name)[1] + uky.err
    assert "export A=b" in uky("render", "run_standard.sh")[1]


def test_over_ssh(uky: Uky, reachable: Machine, fork: Path) -> None:
    (fork / "uky-patch.toml").write_text('[hosts.loop]\npath = "~/it\'s there"\nmodels = "~/mo dels"\n')
    assert uky("render", "git_ignore.py", "--host", "loop", "--write") == (0, "git_ignore.py: written\n"), uky.err
    written = (reachable.home / "it's there/git_ignore.py").read_text()
    assert f"MODEL_BASE = Path('{reachable.home}/mo dels')" in written
    assert f'PROJECT_ROOT = Path("{reachable.home}/it\'s there")' in written
    assert uky("render", "git_ignore.py", "--host", "loop", "--diff") == (0, "")
    assert not (fork / "git_ignore.py").exists()
