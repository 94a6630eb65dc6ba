"""`pins --import-with`: a fork imported by a real environment, untouched and with the records that are for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.lane.running import ROOT, copied

pytestmark = [pytest.mark.runtime, pytest.mark.network]

GONE = "\nfrom vllm.worker.removed import Worker\n"


def pins(tree: Path, *arguments: str | Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "patcher", "--root", tree, "--format", "json", "pins", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=600)
    return done.returncode, done.stdout


def test_records_make_it_import_and_what_none_repairs_is_told(python: Callable[[str], Path], tmp_path: Path) -> None:
    interpreter, tree = python("0.28.0"), copied("0.7.1", tmp_path / "fork")
    critic = tree / "verl/workers/critic/dp_critic.py"
    critic.write_text(critic.read_text() + GONE)
    before = {path: path.read_bytes() for path in tree.rglob("*.py")}
    code, output = pins(tree, "--import-with", interpreter, "--markdown", tmp_path / "new.md")
    told = json.loads(output)
    untouched, repaired = told["imports"]["untouched"], told["imports"]["repaired"]
    assert code == 1
    assert told["to"] == told["imports"]["versions"]
    assert told["to"]["vllm"] == "0.28.0"
    assert "verl.workers.rollout.vllm_rollout.vllm_async_server" in untouched["failed"]
    assert "verl.workers.rollout.vllm_rollout.vllm_async_server" in repaired["ok"]
    assert "verl.workers.critic.dp_critic" in repaired["failed"]
    assert all("No module named 'vllm.worker'" in why for why in repaired["failed"].values())
    assert "cupy is not installed" in repaired["left_out"].values()
    assert "`verl.workers.critic.dp_critic`" in (tmp_path / "new.md").read_text()
    assert {path: path.read_bytes() for path in tree.rglob("*.py")} == before


def test_an_interpreter_with_another_version_is_refused(python: Callable[[str], Path], tmp_path: Path) -> None:
    tree = copied("0.7.1", tmp_path / "fork")
    code, output = pins(tree, "--import-with", python("0.28.0"), "--to", "vllm==0.33.0")
    assert code == 2
    assert json.loads(output)["error"]["title"].startswith("vllm 0.33.0 is proposed, and ")
