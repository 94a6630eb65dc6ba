"""In a git checkout: whose changes are in the way, and one commit a record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tree: Path) -> Path:
    git(tree, "init", "-q", "-b", "fork")
    git(tree, "config", "user.name", "A User")
    git(tree, "config", "user.email", "user@example.invalid")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "verl 99.1")
    return tree


def test_the_branch_and_commit_are_named(uky: Uky, checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert f"fork@{head[:9]}" in uky("status", json=False).out


def test_the_ledger_is_ignored(uky: Uky, checkout: Path) -> None:
    uky("apply")
    assert git(checkout, "status", "--porcelain") == " M verl/server.py\n"
    uky("revert")
    assert git(checkout, "status", "--porcelain") == ""


def test_a_file_with_uncommitted_changes_is_left_alone(uky: Uky, checkout: Path) -> None:
    changed = SERVER + "# under way\n"
    (checkout / "verl/server.py").write_text(changed)
    answer = uky("apply")
    assert answer.code == 5
    assert "--allow-dirty" in answer.err
    assert (checkout / "verl/server.py").read_text() == changed
    assert not (checkout / ".uky-patch").exists()
    assert uky("apply", "--allow-dirty").code == 0
    uky("revert")
    assert (checkout / "verl/server.py").read_text() == changed


def test_a_file_that_only_the_index_has_lost_is_named_once(uky: Uky, checkout: Path) -> None:
    git(checkout, "rm", "--quiet", "--cached", "verl/server.py")
    assert "uncommitted changes in verl/server.py\n" in uky("apply").err


def test_changes_elsewhere_and_our_own_are_no_obstacle(uky: Uky, checkout: Path) -> None:
    (checkout / "verl/__init__.py").write_text("x = 1\n")
    assert uky("apply", "log-flag").code == 0
    assert uky("apply").code == 0


def test_one_commit_for_each_record(uky: Uky, checkout: Path) -> None:
    (checkout / "verl/__init__.py").write_text("x = 1\n")
    git(checkout, "add", "verl/__init__.py")
    assert uky("apply", "--commit").code == 0
    assert git(checkout, "log", "--format=%s", "-2").splitlines() == [
        "Import Parser from its new home",
        "Pass enable_log",
    ]
    first = git(checkout, "show", "HEAD~1:verl/server.py")
    assert "[log-flag]" in first
    assert "[utils-moved]" not in first
    assert git(checkout, "show", "HEAD:verl/server.py") == (checkout / "verl/server.py").read_text()
    assert git(checkout, "status", "--porcelain") == "M  verl/__init__.py\n"
    assert uky("status").code == 0


def test_a_commit_outside_git_is_refused_before_anything_is_written(uky: Uky, tree: Path) -> None:
    answer = uky("apply", "--commit")
    assert answer.code == 5
    assert "no git checkout" in answer.err
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


def test_committed_records_are_reverted_and_applied_again(uky: Uky, checkout: Path) -> None:
    """What the revert has changed is this tool's, though no ledger is left that says so."""
    assert uky("apply").code == 0
    git(checkout, "commit", "-q", "-a", "-m", "patched")
    assert uky("revert").code == 0
    assert "--allow-dirty" not in uky("apply", "--diff", json=False).out
    assert uky("apply").code == 0
    assert git(checkout, "status", "--porcelain", "verl") == ""
    assert uky("revert").code == 0
    path = checkout / "verl/server.py"
    path.write_text(path.read_text() + "\nLIMIT = 4\n")
    assert uky("apply").code == 5
