"""The demo goes the whole round, proves that nothing is left of it, and stops where a step is not in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.demo import fingerprint
from patcher.packages import releases
from tests.lanes import one_in

COMMANDS = ["status", "apply --show-diff", "status", "verify", "check --against vllm --no-since", "apply", "revert"]


@pytest.fixture
def hollow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the demo a verl 0.6.1 without any of the files that records name."""
    version = tmp_path / "release/verl/version/version"
    version.parent.mkdir(parents=True)
    version.write_text("0.6.1\n")
    (tmp_path / "release/verl/__init__.py").touch()

    def wheel(name: str, version: str, *, progress: Callable[[str], None] | None = None) -> Path:
        return tmp_path / "release"

    monkeypatch.setattr(releases, "wheel", wheel)
    return tmp_path


@pytest.mark.network
def test_the_round_ends_where_it_began(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["demo", "--format", "json", "--keep", str(tmp_path / "kept")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["restored"] is True
    assert [step["command"] for step in report["steps"]] == COMMANDS
    assert {step["status"] for step in report["steps"]} == {"ok"}
    first, made, clean, _, left, again, _ = (step["output"] for step in report["steps"])
    pending = {record["id"] for record in first["records"] if record["outcome"] == "pending"}
    assert pending == {record["id"] for record in clean["records"] if record["outcome"] == "applied"} != set()
    assert made["written"]
    assert left["uses"] > 0
    assert left["against"] == {"vllm": "0.20.2"}
    assert again["written"] == []
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["verl"]


@pytest.mark.network
@pytest.mark.parametrize(("tongue", "end"), one_in(2, [("zh_CN.UTF-8", "逐字节相同"), ("C.UTF-8", "byte for byte")]))
def test_each_command_stands_above_what_it_prints(
    tongue: str, end: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", tongue)
    assert run(["demo"]) == 0
    text = capsys.readouterr().out
    shown = [line.partition("    #")[0] for line in text.splitlines() if line.startswith("$ ")]
    assert shown == [f"$ uky-patch {command}" for command in COMMANDS]
    assert "# Uky[vllm-log-requests]" in text
    assert end in text


def test_it_stops_where_the_records_cannot_be_applied(hollow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 3
    text = capsys.readouterr().out
    assert "stopped: `uky-patch apply --show-diff`" in text
    assert "byte for byte" not in text


def test_a_folder_with_something_in_it_is_refused(hollow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hollow / "mine.txt").write_text("mine")
    assert run(["demo", "--keep", str(hollow)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert not (hollow / "verl").exists()


def test_the_fingerprint_sees_names_modes_and_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("x")
    seen = {fingerprint(tmp_path)}
    file.chmod(0o700)
    seen.add(fingerprint(tmp_path))
    file.write_text("y")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "b").mkdir()
    seen.add(fingerprint(tmp_path))
    file.rename(tmp_path / "c")
    seen.add(fingerprint(tmp_path))
    assert len(seen) == 5
