"""The shipped records are parsed once for each state of their files and of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.records import parse
from patcher.records.load import load


@pytest.fixture
def kept_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/patches"


def test_the_shipped_records_are_read_back_and_those_of_a_fork_are_parsed(
    kept_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load()
    (kept,) = kept_folder.iterdir()
    changed = tmp_path / "own" / f"{first[0].id}.toml"
    changed.parent.mkdir()
    changed.write_text(first[0].source.replace(first[0].title, "The fork's own"))
    parsed: list[Path] = []
    read = parse.parse

    def noted(text: str, path: Path) -> object:
        parsed.append(path)
        return read(text, path)

    monkeypatch.setattr(parse, "parse", noted)
    assert load() == first
    assert [one.title for one in load([changed.parent]) if one.id == first[0].id] == ["The fork's own"]
    assert parsed == [changed]
    kept.write_bytes(b"\x80\x05cos\nsystem\n.")
    assert load() == first
    assert len(parsed) == 1 + len(first)
