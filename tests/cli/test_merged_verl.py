"""A newer verl that was merged into a fork of a release, whose version file git has left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.forks import commit, git

NEXT = SERVER + "\nLIMIT = 3\n"


def state(tree: Path, version: str, text: str = SERVER) -> None:
    (tree / "verl/version/version").write_text(f"{version}\n")
    (tree / "verl/server.py").write_text(text)
    commit(tree, f"verl {version}")


@pytest.fixture
def fork(tree: Path) -> Path:
    """On `fork`, made from 99.0, whose branch has left `main` when that said 99.1.dev already."""
    git(tree, "init", "-q", "-b", "main")
    (tree / ".gitignore").write_text("/.uky-patch/\n/.uky-patch-kept/\n")
    state(tree, "99.1.dev")
    git(tree, "checkout", "-q", "-b", "fork")
    state(tree, "99.0")
    git(tree, "checkout", "-q", "main")
    state(tree, "99.1.dev", NEXT)
    git(tree, "checkout", "-q", "fork")
    return tree


@pytest.mark.parametrize(("tag", "version"), [("v99.1", "99.1"), ("", "99.1.dev"), ("v98.9", "99.1.dev")])
def test_it_is_told_and_the_next_step_names_it(uky: Uky, fork: Path, sources: Path, tag: str, version: str) -> None:
    if tag:
        git(fork, "tag", tag, "main")
    assert "Next: uky-patch apply --diff" in uky("status", json=False).out
    git(fork, "merge", "-q", "main")
    assert (fork / "verl/version/version").read_text() == "99.0\n"
    told = uky("status", json=False).out
    assert f"verl/version/version says 99.0, and the merge {git(fork, 'rev-parse', 'HEAD')[:9]} has brought in" in told
    assert f"Next: uky-patch status --assume verl=={version} " in told
    assert uky("status").json["merged_verl"] == version
    assert "has brought in verl" in uky("apply", "--diff", json=False).out
    assert "has brought in verl" in " ".join(uky("check", "--against", f"vllm={sources / 'vllm'}").json["notes"])
    checks = {check["name"]: check for check in uky("verify").json["checks"]}
    assert (checks["verl"]["status"], checks["verl"]["fix"]) == ("warn", f"uky-patch status --assume verl=={version}")
    named = uky("status", "--assume", f"verl=={version}", json=False).out
    assert "has brought in" not in named
    assert "Next: uky-patch apply --diff" in named


def test_records_that_fit_the_old_verl_are_not_skipped(uky: Uky, fork: Path) -> None:
    git(fork, "merge", "-q", "main")
    (fork / "verl/server.py").write_text(NEXT.replace("disable_log=args.disable_log", "quiet=args.disable_log"))
    commit(fork, "drifted")
    told = uky("apply", json=False)
    assert (told.code, "--skip" in told.out + told.err) == (3, False)
    assert "Next: uky-patch status --assume verl==99.1.dev " in told.err


def test_a_version_file_that_was_set_right_is_believed(uky: Uky, fork: Path) -> None:
    git(fork, "merge", "-q", "main")
    state(fork, "99.1", NEXT)
    assert uky("status").json["merged_verl"] == ""


def test_a_merge_of_the_same_verl_says_nothing(uky: Uky, fork: Path) -> None:
    git(fork, "checkout", "-q", "-b", "feature")
    state(fork, "99.0", NEXT)
    git(fork, "checkout", "-q", "fork")
    git(fork, "merge", "-q", "--no-ff", "feature")
    assert uky("status").json["merged_verl"] == ""
