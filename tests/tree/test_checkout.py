"""Git checkouts: where they stand, whose changes are in them, and committing just what was done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.tree import Ledger, Tree
from patcher.tree.checkout import checkout
from patcher.tree.head import head
from tests.tree.toys import TARGETS, apply, revert


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "start")


@pytest.fixture
def fork(tree: Tree) -> Tree:
    commit_all(tree.root)
    return tree


def agrees_with_git(root: Path) -> None:
    found = head(root)
    assert found is not None
    assert found.commit == git(root, "rev-parse", "HEAD")
    assert (found.branch or "HEAD") == git(root, "rev-parse", "--abbrev-ref", "HEAD")
    assert found.commit.startswith(found.short)


def test_the_head_is_what_git_says(fork, tmp_path):
    root = fork.root
    agrees_with_git(root)
    git(root, "checkout", "--quiet", "-b", "feature/a-b")
    agrees_with_git(root)
    git(root, "pack-refs", "--all")
    agrees_with_git(root)
    git(root, "checkout", "--quiet", "--detach")
    agrees_with_git(root)
    git(root, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    agrees_with_git(tmp_path / "other")
    git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "detached"))
    agrees_with_git(tmp_path / "detached")


def test_the_head_of_a_submodule_and_of_a_folder_below_the_top(fork, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "x").touch()
    commit_all(outer)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(fork.root), "inner")
    agrees_with_git(outer / "inner")
    (outer / "below/verl").mkdir(parents=True)
    agrees_with_git(outer / "below")


def test_no_checkout_no_head(tree, fork):
    (fork.root / "venv/lib/site-packages/verl").mkdir(parents=True)
    assert head(fork.root / "venv/lib/site-packages") is None
    assert head(fork.root.parent) is None
    assert checkout(fork.root.parent) is None


def test_a_branch_without_a_commit(tree):
    git(tree.root, "init", "--quiet", "--initial-branch=empty", ".")
    found = head(tree.root)
    assert found is not None
    assert (found.branch, found.commit, found.short) == ("empty", None, "")


def foreign(tree: Tree, ledger: Ledger | None = None) -> tuple[str, ...]:
    found = checkout(tree.root)
    assert found is not None
    return found.foreign_changes(TARGETS, tree.ledger() if ledger is None else ledger, tree.read)


def test_our_changes_are_not_foreign_and_theirs_are(fork):
    assert foreign(fork) == ()
    apply(fork)
    assert checkout(fork.root).changed_files() == TARGETS
    assert foreign(fork) == ()
    assert foreign(fork, Ledger()) == TARGETS
    (fork.root / TARGETS[1]).write_bytes(b"theirs\n")
    (fork.root / TARGETS[2]).unlink()
    assert foreign(fork) == (TARGETS[1], TARGETS[2])


def test_a_staged_change_is_foreign_too(fork):
    (fork.root / TARGETS[0]).write_bytes(b"theirs\n")
    git(fork.root, "add", ".")
    assert foreign(fork) == (TARGETS[0],)


def test_foreign_changes_of_a_tree_below_the_top(tmp_path):
    from tests.tree.toys import plant

    (tmp_path / "mono/third party/fork").mkdir(parents=True)
    tree = plant(tmp_path / "mono/third party/fork")
    commit_all(tmp_path / "mono")
    (tree.root / TARGETS[3]).write_bytes("mühsam\n".encode())
    (tree.root / "verl/ü *.py").write_bytes(b"")
    assert foreign(tree) == (TARGETS[3],)
    assert checkout(tree.root).changed_files() == (TARGETS[3], "verl/ü *.py")


def test_the_tools_folder_is_invisible_to_git_and_git_ignore_is_untouched(fork):
    apply(fork)
    fork.keep(TARGETS[0], b"x")
    assert not [line for line in git(fork.root, "status", "--porcelain", "-uall").splitlines() if "uky" in line]
    assert not (fork.root / ".gitignore").exists()
    revert(fork)
    assert git(fork.root, "status", "--porcelain") == ""


def test_just_the_named_files_are_committed(fork):
    (fork.root / "verl/__init__.py").write_bytes(b"staged = True\n")
    git(fork.root, "add", "verl/__init__.py")
    apply(fork)
    commit = checkout(fork.root).commit(TARGETS[:2], "Patch two\n\nBecause.")
    assert commit == git(fork.root, "rev-parse", "HEAD")
    assert git(fork.root, "show", "--name-only", "--format=%an %B", "HEAD").split() == [
        *["A", "Patch", "two", "Because."],
        *TARGETS[:2],
    ]
    assert git(fork.root, "diff", "--cached", "--name-only") == "verl/__init__.py"
    assert checkout(fork.root).changed_files() == ("verl/__init__.py", *TARGETS[2:])


def test_a_hook_that_refuses_is_quoted(fork):
    hook = fork.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no tabs please >&2\nexit 1\n")
    hook.chmod(0o755)
    apply(fork)
    with pytest.raises(TreeError, match="git commit failed") as caught:
        checkout(fork.root).commit(TARGETS, "x")
    assert "no tabs please" in str(caught.value.cause)


def test_without_git_only_what_needs_git_fails(fork, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert head(fork.root).branch == "main"
    with pytest.raises(TreeError, match="git is needed"):
        foreign(fork)
