"""Which command lines log in before they are read: the plain ones of `migrate`, and no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patcher.cli import early
from patcher.remote.host import Host


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Host]:
    found: list[Host] = []
    monkeypatch.setattr("patcher.remote.link.begin_early", found.append)
    monkeypatch.setenv("PATH", os.environ["PATH"])  # It takes folders out.
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fork/verl").mkdir(parents=True)
    (tmp_path / "fork/verl/__init__.py").touch()
    (tmp_path / "fork/uky-patch.toml").write_text('[hosts.far]\nssh = "me@far.example"\nport = 2222\n')
    return tmp_path / "fork"


@pytest.mark.parametrize(
    "words",
    [
        "migrate far",
        "migrate --dry-run far --until plan",
        "migrate far --only transfer --only verify --yes",
    ],
)
def test_a_plain_migration_logs_in_to_the_host_of_the_table(
    root: Path, begun: list[Host], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(root / "verl")
    early.log_in(words.split())
    early.log_in(["--root", str(root), "--format", "json", *words.split()])
    assert [(host.target, host.port) for host in begun] == [("me@far.example", 2222)] * 2


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "migrate",
        "migrate far near",
        "migrate --help",
        "migrate far --only",
        "migrate far --only nothing",
        "migrate far --only=transfer",
        "migrate far --port 22",
        "migrate here",
        "migrate -oProxyCommand=x",
        "migrate far;id",
        "--root migrate far",
        "run debug --host migrate",
    ],
)
def test_any_other_command_line_is_left_to_the_command(
    root: Path, begun: list[Host], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(root)
    early.log_in(words.split())
    assert begun == []


def test_mistakes_are_left_to_the_command(root: Path, begun: list[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "uky-patch.toml").write_text("[hosts.far]\nport = 0\n")
    early.log_in(["--root", str(root), "migrate", "far"])
    early.log_in(["--root", str(root / "gone"), "migrate", "far"])
    monkeypatch.chdir(root.parent)
    early.log_in(["migrate", "far"])
    assert begun == []
