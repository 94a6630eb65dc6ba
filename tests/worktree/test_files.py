"""What somebody has planted in a file's place is refused at once: no wait, no end without limit, nothing written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.worktree import files

LINE = b"somebody's\n"


def link(place: Path) -> None:
    (place.parent / "target").write_bytes(LINE)
    place.symlink_to("target")


PLANTED: dict[str, Callable[[Path], object]] = {
    "link": link,
    "dangling link": lambda place: place.symlink_to("nowhere"),
    "link to itself": lambda place: place.symlink_to(place.name),
    "link to a device": lambda place: place.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "socket": lambda place: os.mknod(place, stat.S_IFSOCK | 0o600),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_is_not_read(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "file"
    PLANTED[kind](place)
    with pytest.raises(files.IrregularFileError):
        files.read(place, 100)


@pytest.mark.parametrize("kind", ["link to a device", "pipe", "folder", "socket", "link to itself", "dangling link"])
def test_a_link_is_followed_to_a_regular_file_alone(kind: str, tmp_path: Path) -> None:
    place, way = tmp_path / "file", tmp_path / "way"
    PLANTED[kind](place)
    way.symlink_to("file")
    with pytest.raises(OSError):  # noqa: PT011
        files.read(way, 100, follow=True)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"12345")
    assert files.read(place, 5) == b"12345"
    with pytest.raises(files.TooLargeError):
        files.read(place, 4)


def test_a_file_that_does_not_know_its_size_has_the_same_limit() -> None:
    assert files.read("/proc/self/status", 1 << 16)
    with pytest.raises(files.TooLargeError):
        files.read("/proc/self/status", 10)


@pytest.mark.parametrize("kind", ["link", "dangling link", "link to a device", "pipe", "socket"])
def test_what_is_planted_is_replaced_and_not_written_through(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "file"
    PLANTED[kind](place)
    files.write_whole_file(place, b"ours", mode=0o640)
    assert stat.S_ISREG(place.lstat().st_mode)
    assert stat.S_IMODE(place.lstat().st_mode) == 0o640
    assert place.read_bytes() == b"ours"
    if kind == "link":
        assert (tmp_path / "target").read_bytes() == LINE
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "target"}


def test_what_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError):  # noqa: PT011
        files.write_whole_file(tmp_path / "file", b"ours")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_leads_nowhere_but_within_the_tree(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "inner").mkdir(parents=True)
    outside.write_bytes(LINE)
    (tree / "inner/file").write_bytes(b"ours")
    (tree / "near").symlink_to("inner/file")
    (tree / "far").symlink_to(outside)
    (tree / "above").symlink_to(tmp_path)
    assert files.read(files.inside(tree, tree / "near"), 100) == b"ours"
    for path in ("far", "above/outside", "../outside"):
        with pytest.raises(files.IrregularFileError):
            files.inside(tree, tree / path)


@pytest.mark.parametrize("kind", ["link to a device", "folder", "socket", "link to itself", "dangling link", "pipe"])
def test_what_the_user_names_ends(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WRITER_SECONDS", 0.1)
    PLANTED[kind](tmp_path / "log")
    with pytest.raises(OSError):  # noqa: PT011
        files.read_stream(tmp_path / "log", 100)
    assert files.read_stream("/dev/null", 100) == b""


def test_a_pipe_that_somebody_writes_to_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"12345")
    os.close(writing)
    assert files.read_stream(f"/dev/fd/{reading}", 5) == b"12345"
    os.close(reading)


def test_a_file_is_put_where_nothing_is(tmp_path: Path) -> None:
    assert files.create_whole(tmp_path / "a", b"first")
    assert not files.create_whole(tmp_path / "a", b"second")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert not files.create_whole(tmp_path / "link", b"third")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "link"]


def test_a_draft_that_a_killed_run_left_goes_first(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"somebody's")
    (tmp_path / "draft").symlink_to(tmp_path / "outside")
    files.write_whole_file(tmp_path / "a", b"new", draft=tmp_path / "draft")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "outside").read_bytes() == b"somebody's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "outside"]
