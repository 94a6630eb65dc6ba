"""`docs`: a fork's own MIGRATION.md, in both languages, and how `verify` says that it is stale."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import MOVED, RECORD, Answer, write_tree

SETTINGS = """
patches = ["records"]
[pins]
vllm = "2.1"
[hosts.gpu-3]
ssh = "root@gpu-3"
path = "/workspace/fork"
[hosts.gpu-3.env]
HF_HOME = "/data/hf"
"""


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    root = write_tree(tmp_path / "fork", "server")
    (root / "records").mkdir()
    (root / "records/log-flag.toml").write_text(RECORD)
    (root / "records/utils-moved.toml").write_text(MOVED)
    (root / "uky-patch.toml").write_text(SETTINGS)
    return root


Call = Callable[..., Answer]


@pytest.fixture
def call(fork: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def made(*arguments: str) -> Answer:
        code = run(["--root", str(fork), "--assume", "vllm==2.1", *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return made


def stale(call: Call) -> list[str]:
    checks = json.loads(call("verify", "--format", "json").out)["checks"]
    return [
        check["name"] for check in checks if check["name"].startswith("file MIGRATION") and check["status"] == "warn"
    ]


def test_it_says_what_the_fork_changes_in_both_languages(fork: Path, call: Call) -> None:
    call("apply", "log-flag")
    server = fork / "verl/server.py"
    server.write_text(server.read_text() + "LIMIT = 3  # Uky: ours\n")
    assert call("docs", "--write").code == 0
    english, chinese = ((fork / name).read_text() for name in ("MIGRATION.md", "MIGRATION.zh-CN.md"))
    assert "### Pass enable_log" in english
    assert "`log-flag` · in the tree" in english
    assert "`utils-moved` · not in the tree" in english
    assert "| gpu-3 | root@gpu-3 | /workspace/fork | debug |" in english
    assert "| vllm, pinned | 2.1 |" in english
    assert f"- `verl/server.py`: line {len(server.read_text().splitlines())}" in english
    assert "HF_HOME" not in english
    assert "### 改传 enable_log" in chinese
    assert [line.split(" · ")[0] for line in english.splitlines() if line.startswith("`")] == [
        line.split(" · ")[0] for line in chinese.splitlines() if line.startswith("`")
    ]


def test_it_is_stale_when_the_fork_has_changed_and_written_anew_it_holds(fork: Path, call: Call) -> None:
    call("docs", "--write")
    assert stale(call) == []
    call("apply", "utils-moved")
    assert stale(call) == ["file MIGRATION.md", "file MIGRATION.zh-CN.md"]
    call("docs", "--write")
    assert stale(call) == []
    (fork / "uky-patch.toml").write_text(SETTINGS.replace("/workspace/fork", "/data/fork"))
    assert stale(call) == ["file MIGRATION.md", "file MIGRATION.zh-CN.md"]


def test_one_that_somebody_wrote_or_edited_stays(fork: Path, call: Call) -> None:
    (fork / "MIGRATION.md").write_text("# ours\n")
    answer = call("docs", "--write")
    assert (answer.code, (fork / "MIGRATION.md").read_text()) == (1, "# ours\n")
    assert "uky-patch docs --write --force" in answer.out
    assert call("docs", "--write", "--force").code == 0
    kept = [path.read_text() for path in (fork / ".uky-patch-kept").rglob("*") if path.is_file()]
    assert "# ours\n" in kept
    chinese = fork / "MIGRATION.zh-CN.md"
    chinese.write_text(chinese.read_text() + "ours\n")
    found = json.loads(call("docs", "--write", "--format", "json").out)["files"]
    assert {one["file"]: one["outcome"] for one in found} == {
        "MIGRATION.md": "unchanged",
        "MIGRATION.zh-CN.md": "edited",
    }


def test_without_write_it_is_printed_and_nothing_is_put(fork: Path, call: Call) -> None:
    assert call("docs").out.startswith("# What this fork of verl changes\n")
    assert not (fork / "MIGRATION.md").exists()
