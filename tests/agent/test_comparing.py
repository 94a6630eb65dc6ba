"""What the host says of a tree that is to come, and what it never touches."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from patcher.migrate.agent import receiving
from patcher.migrate.transfer import Difference, compare, send
from patcher.remote.channel import RefusedError
from patcher.tree import Tree
from patcher.worktree import layout, manifest
from patcher.worktree.manifest import Entry, Manifest
from tests.agent.direct import direct
from tests.migrate.toys import cargo, contents, fork, git, write

PLAIN = {"verl/a.py": "a", "verl/b.py": "b", "verl/c.py": "c"}


def difference(root: Path, there: Path) -> Difference:
    return compare(direct(there), cargo(root))


def bring(root: Path, there: Path) -> Difference:
    connection = direct(there)
    what = cargo(root)
    found = compare(connection, what)
    send(connection, what, found)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fork(tmp_path / "here", PLAIN)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


def test_changes_are_told_apart_by_who_made_them(root: Path, there: Path) -> None:
    bring(root, there)
    write(root, {"verl/a.py": "ours", "verl/new.py": "n"})
    (root / "verl/b.py").unlink()
    write(there, {"verl/c.py": "theirs", "verl/own.py": "o", "outputs/x": "x"})
    (there / "README.md").chmod(0o600)
    found = difference(root, there)
    assert found.send == ("verl/a.py", "verl/c.py", "verl/new.py")
    assert found.retire == ("verl/b.py",)
    assert found.overwritten == ("verl/c.py",)
    assert found.modes == ("README.md",)
    assert found.same == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_what_root_brings_into_a_users_tree_is_the_users(root: Path, there: Path) -> None:
    write(there, {"verl/part/old.py": "o"})
    for path in (there, *there.rglob("*")):
        os.chown(path, 1234, 1234)
    write(root, {"verl/new/deep/a.py": "1", "verl/part/new.py": "2", "verl/part/inner/b.py": "3"})
    bring(root, there)
    assert {path.stat().st_uid for path in (there / "verl").rglob("*")} == {1234}


def test_without_a_manifest_all_that_differs_is_somebodys_work(root: Path, there: Path) -> None:
    write(there, {"verl/a.py": "theirs", "verl/b.py": "b", "verl/own.py": "o"})
    found = difference(root, there)
    assert found.overwritten == ("verl/a.py",)
    assert found.retire == ()
    bring(root, there)
    assert (there / "verl/own.py").read_text() == "o"


def test_a_copy_made_by_hand_is_taken_over_without_sending(root: Path, there: Path) -> None:
    write(there, {path: (root / path).read_bytes() for path in cargo(root).items})
    assert difference(root, there).nothing
    assert manifest.read(str(there)) is not None
    git(root, "commit", "--quiet", "--allow-empty", "--message=next")
    assert difference(root, there).nothing
    noted = manifest.read(str(there))
    assert noted is not None
    assert noted.commit == git(root, "rev-parse", "HEAD").strip()


def test_looking_only_writes_nothing(root: Path, there: Path) -> None:
    connection = direct(there)
    connection.channel.kept.pop("begun")  # type: ignore[attr-defined]
    assert len(compare(connection, cargo(root)).send) == 5
    assert list(there.iterdir()) == []


def test_a_tree_that_is_not_there_yet_can_be_compared_with(root: Path, there: Path) -> None:
    connection = direct(there / "not/yet")
    connection.channel.kept.pop("begun")  # type: ignore[attr-defined]
    assert len(compare(connection, cargo(root)).send) == 5


def test_nothing_is_written_through_a_symlink_that_leads_out(root: Path, there: Path, tmp_path: Path) -> None:
    bring(root, there)
    canary = tmp_path / "canary"
    (there / "verl").rename(canary)
    (there / "verl").symlink_to(canary)
    before = contents(canary)
    write(root, {"verl/a.py": "ours"})
    with pytest.raises(RefusedError, match="not written through") as caught:
        difference(root, there)
    assert caught.value.kind == "leads-out"
    assert str(canary) in str(caught.value)
    assert contents(canary) == before


def test_a_symlink_that_comes_in_the_way_while_files_are_sent_is_refused_too(
    root: Path, there: Path, tmp_path: Path
) -> None:
    connection, what = direct(there), cargo(root)
    found = compare(connection, what)
    (tmp_path / "canary").mkdir()
    (there / "verl").symlink_to(tmp_path / "canary")
    with pytest.raises(RefusedError, match="not written through"):
        send(connection, what, found)
    assert list((tmp_path / "canary").iterdir()) == []


def test_a_symlink_within_the_tree_gives_way_to_the_folder(root: Path, there: Path) -> None:
    write(there, {"elsewhere/a.py": "theirs"})
    (there / "verl").symlink_to("elsewhere")
    found = bring(root, there)
    assert "verl" in found.retire
    assert (there / "verl/a.py").read_text() == "a"
    assert (there / "elsewhere/a.py").read_text() == "theirs"
    (kept,) = (path for path in (there / layout.KEPT).iterdir() if path.is_dir())
    assert (kept / "verl").is_symlink()


def test_a_file_in_the_way_of_a_folder_is_moved_aside(root: Path, there: Path) -> None:
    write(there, {"verl": "a file"})
    found = bring(root, there)
    assert found.overwritten == ("verl",)
    (kept,) = (path for path in (there / layout.KEPT).iterdir() if path.is_dir())
    assert (kept / "verl").read_text() == "a file"
    assert (there / "verl/a.py").exists()


def test_a_folder_with_somebodys_files_does_not_give_way(root: Path, there: Path) -> None:
    write(there, {"README.md/checkpoint.pt": "weights"})
    with pytest.raises(RefusedError, match="is to be a file") as caught:
        difference(root, there)
    assert caught.value.kind == "in-the-way"
    assert "checkpoint.pt" in str(caught.value)


def test_what_has_a_second_name_elsewhere_does_not_change_there(root: Path, there: Path, tmp_path: Path) -> None:
    bring(root, there)
    (there / "verl/b.py").chmod(0o600)
    os.link(there / "verl/a.py", tmp_path / "a")
    os.link(there / "verl/b.py", tmp_path / "b")
    write(root, {"verl/a.py": "ours"})
    bring(root, there)
    assert (there / "verl/a.py").read_text() == "ours"
    assert (tmp_path / "a").read_text() == "a"
    assert (there / "verl/b.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_notes_of_an_apply_there_do_not_outlive_the_files_they_speak_of(root: Path, there: Path) -> None:
    notes = [f"{layout.FOLDER}/{name}" for name in ("ledger.json", "originals/abc", "journal.json", "staged/1.new")]
    write(there, dict.fromkeys(notes, "{}"))
    found = bring(root, there)
    assert set(notes[:2]) <= set(found.retire)
    assert found.overwritten == ()
    assert not any((there / path).exists() for path in notes)
    (kept,) = (path for path in (there / layout.KEPT).iterdir() if path.is_dir())
    assert all((kept / path).exists() for path in notes)


HOSTILE = (
    "/etc/passwd",
    "../out",
    "verl/../../out",
    "verl//a",
    "./a",
    "",
    ".git/hooks/pre-commit",
    "sub/.GIT/config",
    ".uky-patch/host/manifest.json",
    ".uky-patch/lock",
    ".uky-patch/journal.json",
    ".uky-patch",
    "sub/.uky-patch/ledger.json",
    ".uky-patch-kept/x",
    "a\0b",
)


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused_on_the_host(there: Path, path: str) -> None:
    body = manifest.pack(Manifest({path: Entry("0" * 64, 0o644, 1)}, None, False, "1", "now"))
    with pytest.raises(RefusedError) as caught:
        direct(there).channel.ask("compare", body=body)
    assert caught.value.kind == "path"
    assert list(there.iterdir()) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "", "a/../../../x"])
def test_hostile_links_are_refused_on_the_host(there: Path, target: str) -> None:
    body = manifest.pack(Manifest({"verl/link": Entry("0" * 64, 0o777, 1, target)}, None, False, "1", "now"))
    with pytest.raises(RefusedError) as caught:
        direct(there).channel.ask("compare", body=body)
    assert caught.value.kind == "path"


def test_a_path_that_is_a_file_and_a_folder_is_refused(there: Path) -> None:
    entry = Entry("0" * 64, 0o644, 1)
    body = manifest.pack(Manifest({"a": entry, "a/b/c": entry}, None, False, "1", "now"))
    with pytest.raises(RefusedError, match="a file and a folder"):
        direct(there).channel.ask("compare", body=body)


def test_a_manifest_of_a_newer_tool_is_refused_and_kept(root: Path, there: Path) -> None:
    bring(root, there)
    place = there / layout.MANIFEST
    newer = json.dumps({**json.loads(place.read_text()), "format": 99})
    place.write_text(newer)
    with pytest.raises(RefusedError, match="99") as caught:
        difference(root, there)
    assert "Update uky-patch" in str(caught.value)
    assert place.read_text() == newer


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "files": {"a": 1}}'])
def test_a_damaged_manifest_is_told(root: Path, there: Path, content: str) -> None:
    write(there, {layout.MANIFEST: content})
    with pytest.raises(RefusedError, match="damaged"):
        difference(root, there)


def test_a_hundred_thousand_files_cross_in_a_few_megabytes(there: Path) -> None:
    entries = {f"verl/part{n % 1000}/module{n}.py": Entry(f"{n:064x}", 0o644, n) for n in range(100_000)}
    what = Manifest(entries, "c" * 40, False, "1", "now")
    body = manifest.pack(what)
    answer = direct(there).channel.ask("compare", body=body)
    assert len(answer["send"]) == 100_000
    assert len(body) < 8 << 20


def test_an_apply_that_runs_in_the_tree_is_waited_for_and_then_respected(
    root: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(root, there)
    write(root, {"README.md": "new"})
    monkeypatch.setattr(receiving, "_PATIENCE", 0.2)
    tree = Tree(there)
    with tree.transaction("apply"), pytest.raises(RefusedError, match="at work in the tree") as caught:
        bring(root, there)
    assert "held by apply" in str(caught.value)
    assert (there / "README.md").read_text() == "# verl\n"
    bring(root, there)
    assert (there / "README.md").read_text() == "new"
    with tree.transaction("apply"):
        pass
