"""Rendered files on a real host: what is written, and what stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from patcher.errors import HostError
from patcher.profiles.rendered_file import Rendered, with_hash_line, write_files
from patcher.remote.connection import Connection, connect
from patcher.remote.host import HERE, Host
from patcher.remote.tree_folder import open_tree_folder
from tests.machines import Machine


def file(text: str, path: str = "run.sh", mode: int = 0o755) -> Rendered:
    return Rendered(path, with_hash_line(f"# rendered by uky-patch @\n{text}\n"), mode)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "fork"


@pytest.fixture
def here(root: Path) -> Iterator[Connection]:
    host = Host(HERE, HERE, path=str(root))
    with connect(host) as connection:
        open_tree_folder(connection, "fork", "a test")
        yield connection


def test_written_unchanged_updated(here: Connection, root: Path) -> None:
    (first,) = write_files(here, [file("one")])
    assert first.outcome == "written"
    assert (root / "run.sh").read_text() == file("one").text
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert write_files(here, [file("one")])[0].outcome == "unchanged"
    (updated,) = write_files(here, [file("two")])
    assert (updated.outcome, updated.there) == ("updated", file("one").text)
    assert (root / "run.sh").read_text() == file("two").text


def test_an_edit_by_hand_is_kept_and_shown(here: Connection, root: Path) -> None:
    write_files(here, [file("one")])
    edited = file("one").text + "# mine\n"
    (root / "run.sh").write_text(edited)
    (kept,) = write_files(here, [file("two")])
    assert (kept.outcome, kept.there) == ("kept", edited)
    assert (root / "run.sh").read_text() == edited


def test_an_edit_taken_back_is_ours_again(here: Connection, root: Path) -> None:
    write_files(here, [file("one")])
    (root / "run.sh").write_text("x")
    assert write_files(here, [file("two")])[0].outcome == "kept"
    (root / "run.sh").write_text(file("one").text)
    assert write_files(here, [file("two")])[0].outcome == "updated"


def test_the_hash_line_is_enough_where_the_memory_is_lost(here: Connection, root: Path) -> None:
    write_files(here, [file("one")])
    (root / ".uky-patch/host/rendered.json").write_text("{ broken")
    assert write_files(here, [file("two")])[0].outcome == "updated"
    (root / ".uky-patch/host/rendered.json").unlink()
    (root / "run.sh").write_text(file("two").text.replace("two", "2"))
    assert write_files(here, [file("three")])[0].outcome == "kept"


def test_what_was_never_ours_stays(here: Connection, root: Path) -> None:
    root.mkdir(exist_ok=True)
    (root / "run.sh").write_text("echo mine\n")
    (root / "elsewhere").write_text("x")
    (root / "link.sh").symlink_to("elsewhere")
    (root / "folder.sh").mkdir()
    found = write_files(here, [file("one"), file("one", "link.sh"), file("one", "folder.sh")])
    assert [one.outcome for one in found] == ["foreign"] * 3
    assert (root / "run.sh").read_text() == "echo mine\n"
    assert (root / "elsewhere").read_text() == "x"


def test_what_a_transfer_brought_stays(here: Connection, root: Path) -> None:
    write_files(here, [file("one")])
    (root / ".uky-patch/host/manifest.json").write_text('{"format": 1, "files": {"run.sh": ["0", 0, 0]}}')
    assert write_files(here, [file("two")])[0].outcome == "foreign"
    assert (root / "run.sh").read_text() == file("one").text


def test_a_dry_run_writes_nothing(here: Connection, root: Path) -> None:
    before = sorted(str(path) for path in root.rglob("*"))
    (one,) = write_files(here, [file("one")], dry=True)
    assert one.outcome == "written"
    assert sorted(str(path) for path in root.rglob("*")) == before


@pytest.mark.parametrize("path", ["../out.sh", "/tmp/out.sh", "a/../../out.sh", ".uky-patch/host/lock", "link/out.sh"])
def test_no_path_leads_out_of_the_tree(here: Connection, root: Path, path: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (root / "link").symlink_to(tmp_path / "other")
    with pytest.raises(HostError, match="cannot be written"):
        write_files(here, [file("one"), file("one", path)])
    assert not (root / "run.sh").exists()
    assert not list((tmp_path / "other").iterdir())


def test_no_half_of_the_files(here: Connection, root: Path) -> None:
    root.mkdir(exist_ok=True)
    with pytest.raises(HostError):
        write_files(here, [file("one"), file("two", "x" * 256)])
    assert not [path.name for path in root.iterdir() if path.name != ".uky-patch"]


def test_all_files_in_one_round_trip_over_ssh(reachable: Machine) -> None:
    with connect(Host("loop", "loop", path="~/put")) as connection:
        open_tree_folder(connection, "put", "a test")
        before = connection.channel.trips
        found = write_files(connection, [file("one"), file("ü 数\udcff", "git_ignore.py", 0o644)])
        assert connection.channel.trips == before + 1
    assert [one.outcome for one in found] == ["written", "written"]
    assert os.fsencode("ü 数\udcff") in (reachable.home / "put/git_ignore.py").read_bytes()
    assert (reachable.home / "put/run.sh").owner() == reachable.user
