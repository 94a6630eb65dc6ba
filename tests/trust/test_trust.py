"""What is remembered of trust, and what it is worth."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.errors import TreeError
from patcher.trust import distrust, is_trusted, search_only_outside, trust


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path, state: Path) -> Path:
    made = tmp_path / "fork"
    (made / "verl").mkdir(parents=True)
    (made / "verl/__init__.py").touch()
    return made


def record(state: Path) -> Path:
    (found,) = (state / "uky-patch/trusted").iterdir()
    return found


def test_a_tree_is_trusted_once_it_is_said(root: Path, state: Path) -> None:
    assert not is_trusted(root)
    trust(root)
    assert is_trusted(root)
    assert record(state).stat().st_mode & 0o777 == 0o600
    assert distrust(root)
    assert not is_trusted(root)
    assert not distrust(root)


def test_the_command_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trust", "--root", str(root), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"root": str(root), "trusted": True}
    assert run(["trust", "--root", str(root), "--forget", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["trusted"] is False


def test_another_tree_in_its_place_is_another(root: Path, tmp_path: Path) -> None:
    trust(root)
    shutil.move(root, tmp_path / "aside")
    root.mkdir()
    assert not is_trusted(root)


def test_a_link_to_it_is_the_same_tree(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    trust(tmp_path / "link")
    assert is_trusted(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
def test_a_tree_of_another_owner_is_another(root: Path) -> None:
    trust(root)
    os.chown(root, 1234, 1234)
    assert not is_trusted(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")
def test_a_note_that_somebody_else_wrote_is_worth_nothing(root: Path, state: Path) -> None:
    trust(root)
    os.chown(record(state), 1234, 1234)
    assert not is_trusted(root)


def test_a_note_that_is_a_link_is_worth_nothing(root: Path, state: Path, tmp_path: Path) -> None:
    trust(root)
    kept = shutil.move(record(state), tmp_path / "note")
    (state / "uky-patch/trusted" / hex(0)).touch()
    (state / "uky-patch/trusted" / hex(0)).unlink()
    name = Path(kept).name
    assert name == "note"
    trust(root)
    place = record(state)
    place.unlink()
    place.symlink_to(kept)
    assert not is_trusted(root)


def test_a_tree_cannot_hold_its_own_note(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    with pytest.raises(TreeError):
        trust(root)
    assert not is_trusted(root)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"yes"', b"\xff", b"[" * 10_000])
def test_a_damaged_note_is_none(root: Path, state: Path, content: bytes) -> None:
    trust(root)
    record(state).write_bytes(content)
    assert not is_trusted(root)


def test_path_without_what_depends_on_where_one_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "bin").mkdir()
    outside = root.parent / "link"
    outside.symlink_to(root / "bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(root / ".venv"))
    active = f"{root}/.venv/bin"
    monkeypatch.setenv("PATH", f".::bin:{active}:/usr/bin:{root}/bin:{outside}:{root}/../fork/bin")
    monkeypatch.chdir("/")
    search_only_outside()
    assert os.environ["PATH"] == f"{active}:/usr/bin:{root}/bin:{outside}:{root}/../fork/bin"
    search_only_outside(root)
    assert os.environ["PATH"] == f"{active}:/usr/bin"


def test_path_of_a_trusted_tree_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(root)
    monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin")
    search_only_outside(root)
    assert os.environ["PATH"] == f"{root}/bin:/usr/bin"


@pytest.mark.parametrize("key", ["patches", "symptoms"])
@pytest.mark.parametrize("folder", ["../outside", "{outside}", "link", "link/deeper", "inner/../../outside", "loop"])
def test_folders_of_the_configuration_lie_in_the_tree(
    root: Path, capsys: pytest.CaptureFixture[str], key: str, folder: str
) -> None:
    outside = root.parent / "outside"
    (outside / "deeper").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to("../loop")
    (root / "inner").mkdir()
    (root / "uky-patch.toml").write_text(f'{key} = ["{folder.format(outside=outside)}"]\n')
    assert run(["status", "--root", str(root)]) == 4
    answer = capsys.readouterr().err
    assert "uky-patch.toml:1" in answer
    assert key in answer
    assert "must lie in the tree" in answer


@pytest.mark.parametrize("folder", ["own", "./own", "inner/../own", "inside"])
def test_folders_in_it_are_taken(root: Path, folder: str) -> None:
    (root / "own").mkdir()
    (root / "inner").mkdir()
    (root / "inside").symlink_to("own")
    (root / "uky-patch.toml").write_text(f'patches = ["{folder}"]\n')
    assert run(["list", "--root", str(root)]) == 0
