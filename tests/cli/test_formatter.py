"""verl's own formatter over a tree that is patched: its layout stays, and the records hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.packages.releases import wheel

pytestmark = [pytest.mark.network, pytest.mark.slow]


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in (root / "verl").rglob("*.py")}


def test_a_fork_that_is_formatted_after_each_apply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of verl 0.6.1, which its formatter leaves as it is, some lines of records are longer than its limit."""

    def call(*words: str) -> tuple[int, dict[str, str], list[str]]:
        code = run(["--root", str(root), "--assume", "vllm==0.20.2", "--format", "json", *words])
        report = json.loads(capsys.readouterr().out)
        return code, {one["id"]: one["outcome"] for one in report["records"]}, report["written"]

    root = tmp_path / "fork"
    shutil.copytree(wheel("verl", "0.6.1") / "verl", root / "verl", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (root, *root.rglob("*")):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)  # noqa: PTH101
    before = contents(root)
    _, applied, written = call("apply")
    assert len(written) > 5
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length", "120", root], check=True
    )
    there = contents(root)
    changed = [path for path in written if there[path] != before[path]]
    assert any("# Uky[flash-attn-padding]" in there[path].decode() for path in changed)
    assert "tampered" in call("status")[1].values()
    assert call("apply", "--merge") == (0, applied, [])
    for _ in range(2):
        assert call("apply")[1:] == (applied, [])
    assert (contents(root) == there, call("status")[1]) == (True, applied)
    assert call("revert", "vllm-log-requests")[0] == 0
    assert call("apply")[1] == applied
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length", "120", root], check=True
    )
    assert contents(root) == there
    assert call("revert")[0] == 0
    assert contents(root) == before
