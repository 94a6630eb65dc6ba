"""A merge or a rebase that git has not ended: nothing that it has put into a file is taken for a hand's and lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.cli.test_releases_change import files
from tests.forks import commit, git

NEXT = SERVER.replace('"""A server."""', '"""A server of the next release."""') + "\nLIMIT = 3\n"
CLASHING = NEXT.replace("disable_log=args.disable_log", "disable_log=args.silent")
END = "Next: git merge --continue, or git merge --abort"


@pytest.fixture
def next_release(tree: Path) -> Path:
    """A checkout on `fork`, with the branches `next`, which merges by itself, and `clashing`, which does not."""
    git(tree, "init", "-q", "-b", "fork")
    (tree / ".gitignore").write_text("/.uky-patch/\n/.uky-patch-kept/\n")
    commit(tree, "verl 99.1")
    for branch, text in (("next", NEXT), ("clashing", CLASHING)):
        git(tree, "checkout", "-q", "-b", branch, "fork")
        (tree / "verl/server.py").write_text(text)
        commit(tree, branch)
    git(tree, "checkout", "-q", "fork")
    return tree


def patched(uky: Uky, tree: Path) -> None:
    assert uky("apply").code == 0
    commit(tree, "patched")


def begin(tree: Path, *words: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):  # With conflicts; git says so with its exit code.
        git(tree, *words)


WRITING = (["revert"], ["revert", "--force"], ["revert", "--merge"], ["apply"], ["apply", "--merge", "--allow-dirty"])


@pytest.mark.parametrize("branch", ["next", "clashing"])
def test_nothing_is_written_in_the_middle_of_a_merge(uky: Uky, next_release: Path, branch: str) -> None:
    tree = next_release
    patched(uky, tree)
    words = ["merge", "--no-commit", branch]
    begin(tree, *words) if branch == "clashing" else git(tree, *words)
    there = files(tree)
    for command in ("status", "verify", "apply", "revert"):
        told = uky(command, json=False)
        assert "git is in the middle of a merge here" in told.out + told.err
        assert "Next: uky-patch" not in told.out + told.err
    assert END in uky("status", json=False).out
    assert uky("status").json["next"] == ""
    assert END in uky("apply", "--diff", json=False).err
    for written in WRITING:
        done = uky(*written, json=False)
        assert (done.code, "verl/server.py: git has changed them" in done.err) == (5, True)
    assert files(tree) == there
    if branch == "next":
        commit(tree, "merged")
        assert "Next: uky-patch apply --merge" in uky("status", json=False).out
        assert uky("apply", "--merge").code == 0
        assert uky("revert").code == 0
        assert (tree / "verl/server.py").read_text() == NEXT
    else:
        git(tree, "merge", "--abort")
        assert uky("status").code == 0


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["rebase", "clashing"], "git rebase --continue, or git rebase --abort"),
        (["cherry-pick", "clashing"], "git cherry-pick --continue, or git cherry-pick --abort"),
    ],
)
def test_nor_of_a_rebase_or_a_cherry_pick(uky: Uky, next_release: Path, words: list[str], ends: str) -> None:
    patched(uky, next_release)
    begin(next_release, *words)
    there = files(next_release)
    assert f"Next: {ends}" in uky("status", json=False).out
    assert uky("revert", "--force").code == 5
    assert files(next_release) == there


def test_conflicts_of_a_stash_are_seen_too(uky: Uky, next_release: Path) -> None:
    tree = next_release
    (tree / "verl/server.py").write_text(CLASHING)
    git(tree, "stash")
    patched(uky, tree)
    begin(tree, "stash", "pop")
    there = files(tree)
    assert "Next: solve the conflicts" in uky("status", json=False).out
    assert uky("revert", "--force").code == 5
    assert files(tree) == there


def test_where_git_has_changed_nothing_a_record_is_applied(uky: Uky, next_release: Path) -> None:
    """As with `git rebase --exec`."""
    (next_release / ".git/rebase-merge").mkdir()
    assert uky("apply").code == 0
    assert uky("revert").code == 0


def test_an_edit_of_what_was_merged_does_not_bring_the_old_file_back(uky: Uky, next_release: Path) -> None:
    tree = next_release
    patched(uky, tree)
    git(tree, "merge", "-q", "next")
    edited = (tree / "verl/server.py").read_text().replace("enable_log=args.enable_log", "enable_log=True")
    (tree / "verl/server.py").write_text(edited)
    assert uky("status").json["ledger"]["replaced"]["stuck"] == ["verl/server.py"]
    uky("revert", "--force")
    assert (tree / "verl/server.py").read_text() == edited


def test_an_edit_beside_uncommitted_records_is_no_other_commit(uky: Uky, next_release: Path) -> None:
    tree = next_release
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text().replace("enable_log=args.enable_log", "enable_log=True"))
    assert uky("status").json["ledger"]["replaced"]["stuck"] == []
    assert uky("revert", "--force").code == 0
    assert path.read_text() == SERVER
