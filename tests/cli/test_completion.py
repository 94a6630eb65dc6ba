"""What a shell is offered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patcher.cli.app import COMMANDS, run


def offered(words: str, number: int) -> set[str]:
    asked = {"_UKY_PATCH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    command = str(Path(sys.executable).with_name("uky-patch"))
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_commands_options_and_record_ids_are_offered() -> None:
    assert offered("uky-patch ", 1) == set(COMMANDS)
    assert {"--diff", "--dry-run", "--root"} <= offered("uky-patch apply --", 2)
    assert offered("uky-patch explain vllm-log", 2) == {"vllm-log-requests"}


def test_hosts_are_offered_from_the_fork_s_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "__init__.py").touch()
    (tmp_path / "uky-patch.toml").write_text("[hosts.h200-3]\nport = 22022\n[hosts.b200]\n")
    monkeypatch.chdir(tmp_path)
    assert offered("uky-patch migrate h", 2) == {"h200-3"}
    assert offered("uky-patch job stop ", 3) == {"h200-3", "b200"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_UKY_PATCH_COMPLETE={shell}_complete" in capsys.readouterr().out
