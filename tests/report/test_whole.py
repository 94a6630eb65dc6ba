"""A report that cannot be written leaves what was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.terminal.report_file import write_whole
from patcher.worktree import files


def test_a_report_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    file = tmp_path / "found.sarif"
    file.write_text("older, and longer than the new one")
    write_whole(file, "new")
    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["found.sarif"]


def test_one_that_fails_half_way_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "found.sarif"
    file.write_text("older")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(TreeError, match="cannot be written"):
        write_whole(file, "newer")
    assert file.read_bytes() == b"older"
    assert [path.name for path in tmp_path.iterdir()] == ["found.sarif"]
