"""The shipped record `versions-at-import`: a patched tree that is imported beside another vLLM warns once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patcher.cli.app import run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "fork"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/version/version").write_text("0.7.0\n")
    (root / "verl/__init__.py").write_text('"""verl."""\n\nimport os\n\n__version__ = "0.7.0"\n')
    assert run(["--root", str(root), "--assume", "vllm==0.12.0", "apply", "versions-at-import"]) == 0
    return root


def imported(tree: Path, vllm: str, code: str = "import verl") -> str:
    """What is written to standard error where verl is imported beside that vLLM."""
    place = tree.parent / f"vllm-{vllm}"
    folder = place / f"vllm-{vllm.replace('+', '_')}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {vllm}\n")
    env = {"PYTHONPATH": f"{place}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree.parent, env=env, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_another_vllm_is_told_and_the_same_is_not(tree: Path) -> None:
    answer = imported(tree, "0.20.2")
    assert "verl was patched for vllm 0.12.0, and vllm 0.20.2 is installed" in answer
    assert imported(tree, "0.12.0+cu128") == ""


def test_processes_that_a_run_starts_do_not_say_it_again(tree: Path) -> None:
    child = "import subprocess, sys, verl; subprocess.run([sys.executable, '-c', 'import verl'], check=True)"
    assert imported(tree, "0.20.2", child).count("was patched for") == 1


def test_without_a_ledger_nothing_is_said(tree: Path) -> None:
    (tree / ".uky-patch/ledger.json").write_text("{")
    assert imported(tree, "0.20.2") == ""
