"""Digests that are known by stamps: a file is read again when anything about it has changed, and only then."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from patcher.worktree import digest_cache, hashing
from patcher.worktree.digest_cache import DigestCache
from patcher.worktree.hashing import Digest


class _Reading:
    """Notes what is read, and reads it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        self._digest = hashing.digest
        monkeypatch.setattr(hashing, "digest", self._noted)

    def _noted(self, path: str) -> Digest:
        self.paths.append(Path(path).name)
        return self._digest(path)

    def of(self, root: Path, *names: str) -> dict[str, str]:
        self.paths.clear()
        known = DigestCache(str(root), str(root.parent / "notes/digests.json"))
        found, failed = known.digests(names)
        known.save()
        assert {name: digest.sha256 for name, digest in found.items()} == {
            name: hashing.digest_of((root / name).read_bytes()) for name in names if (root / name).exists()
        }
        return {name: type(error).__name__ for name, error in failed.items()}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files, and two seconds that are over in a twentieth of one."""
    monkeypatch.setattr(digest_cache, "SETTLED", 5 * 10**7)
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("a", "b", "odd \udcff"):
        (folder / name).write_text(f"content of {name!a}")
    return folder


def test_what_has_not_changed_is_read_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = _Reading(monkeypatch)
    names = ("a", "b", "odd \udcff", "missing")
    time.sleep(0.1)
    assert reading.of(root, *names) == {"missing": "FileNotFoundError"}
    assert sorted(reading.paths) == sorted(names)
    time.sleep(0.1)
    assert reading.of(root, *names) == {"missing": "FileNotFoundError"}
    assert reading.paths == ["missing"]


def test_an_edit_that_puts_size_and_time_back_is_noticed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = _Reading(monkeypatch)
    time.sleep(0.1)
    reading.of(root, "a", "b")
    before = (root / "a").stat()
    (root / "a").write_text("another of 'a'")
    os.utime(root / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (root / "a").stat().st_size == before.st_size
    reading.of(root, "a", "b")
    assert reading.paths == ["a"]


def test_what_was_written_just_now_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second edit within the clock's grain would leave the same stamps."""
    monkeypatch.setattr(digest_cache, "SETTLED", 60 * 10**9)
    reading = _Reading(monkeypatch)
    reading.of(root, "a")
    reading.of(root, "a")
    assert reading.paths == ["a"]


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"form": 1}', '{"form": 1, "root": "/other", "files": {}}'])
def test_damaged_notes_know_nothing(root: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = _Reading(monkeypatch)
    time.sleep(0.1)
    reading.of(root, "a", "b")
    (root.parent / "notes/digests.json").write_text(damage)
    reading.of(root, "a", "b")
    assert reading.paths == ["a", "b"]
