"""A git clone of a patched fork has the edits and no ledger; and runs that change the ledger alone say so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.cli.test_commit import FILE, _plain_git, commit_all, git  # noqa: F401


@pytest.fixture
def clone(uky: Uky, tree: Path, tmp_path: Path) -> Path:
    commit_all(tree)
    assert uky("apply", "--commit").code == 0
    place = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(tree), str(place)], check=True)
    return place


def test_status_and_revert_of_a_clone_name_adopt(uky: Uky, clone: Path) -> None:
    status = uky("--root", str(clone), "status")
    assert status.outcomes == {"log-flag": "adopted", "utils-moved": "adopted"}
    assert status.json["next"].startswith("uky-patch adopt --all ")
    patched = (clone / FILE).read_text()
    for words in (("revert",), ("revert", "--dry-run")):
        answer = uky("--root", str(clone), *words)
        assert (answer.code, answer.json["not_in_ledger"]) == (1, ["log-flag", "utils-moved"])
        assert answer.json["next"].startswith("uky-patch adopt --all ")
    told = uky("--root", str(clone), "revert", json=False)
    assert "nothing was put back: log-flag, utils-moved\n2 records were applied elsewhere" in told.out
    one = uky("--root", str(clone), "revert", "log-flag")
    assert (one.code, one.json["error"]["advice"]) == (2, "Enter it there first: uky-patch adopt log-flag")
    assert (clone / FILE).read_text() == patched


def test_what_adopt_enters_into_the_ledger_is_told_and_reverted(uky: Uky, clone: Path) -> None:
    words = ("--root", str(clone), "adopt", "--all", "--from", "HEAD~2")
    tried = uky(*words, "--dry-run", json=False)
    assert tried.code == 1
    assert "no file would change, and the ledger would; nothing was written" in tried.out
    done = uky(*words, json=False)
    assert done.code == 0
    assert done.out.endswith("2 records hold; the ledger was written, and no file had to change\n")
    assert uky("--root", str(clone), "status").json["next"] == ""
    assert uky("--root", str(clone), "revert").code == 0
    assert (clone / FILE).read_text() == SERVER


def test_with_nothing_to_adopt_no_pending_record_is_shown(uky: Uky, tree: Path) -> None:
    commit_all(tree)
    answer = uky("adopt", "--all", json=False)
    assert answer.code == 0
    assert answer.out.endswith("\nnothing to adopt: no record's edits were made by hand here\n")
    assert "log-flag" not in answer.out


def test_a_merge_that_changes_the_ledger_alone_says_so(uky: Uky, tree: Path) -> None:
    assert uky("apply").code == 0
    (tree / FILE).write_text("# mine\n" + (tree / FILE).read_text())
    tried = uky("apply", "--merge", "--dry-run", json=False)
    assert tried.code == 1
    assert "no file would change, and the ledger would; nothing was written\nNext: uky-patch apply --merge" in tried.out
    done = uky("apply", "--merge", json=False)
    assert done.code == 0
    assert done.out.endswith("2 records hold; the ledger was written, and no file had to change\n")
    assert uky("apply", "--merge", json=False).out.endswith("nothing to do\n")
