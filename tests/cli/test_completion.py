"""What a shell is offered."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from patcher.cli.app import COMMANDS, run


def offered(words: str, number: int) -> set[str]:
    asked = {"_UKY_PATCH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    code = "from patcher.cli.app import uky_patch; uky_patch(prog_name='uky-patch')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_commands_options_and_record_ids_are_offered() -> None:
    assert offered("uky-patch ", 1) == set(COMMANDS)
    assert {"--diff", "--dry-run", "--root"} <= offered("uky-patch apply --", 2)
    assert offered("uky-patch explain vllm-log", 2) == {"vllm-log-requests"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_UKY_PATCH_COMPLETE={shell}_complete" in capsys.readouterr().out
