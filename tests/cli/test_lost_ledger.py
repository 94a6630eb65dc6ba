"""A lost ledger through the command line: what says so, what is left alone, and what puts it right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SERVER, Uky
from tests.lanes import one_in

LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda place: place.write_bytes(b""),
    "truncated": lambda place: place.write_bytes(place.read_bytes()[:-20]),
    "garbage": lambda place: place.write_bytes(b"\xff\x00"),
    "a folder": lambda place: (place.unlink(), place.mkdir()),
    "a link": lambda place: (place.unlink(), place.symlink_to("/etc/hostname")),
}
LOOKS = (
    ["status"],
    ["status", "--all"],
    ["verify"],
    ["list"],
    ["explain", "log-flag"],
    ["apply", "--dry-run"],
    ["apply", "--dry-run", "--diff"],
    ["revert", "--dry-run"],
    ["revert", "--dry-run", "--diff"],
)


def below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", one_in(3, LOSSES))
def test_it_is_said_and_nothing_that_looks_removes_a_thing(uky: Uky, tree: Path, how: str) -> None:
    uky("apply")
    patched = (tree / "verl/server.py").read_bytes()
    LOSSES[how](tree / ".uky-patch/ledger.json")
    before = below(tree)
    for words in LOOKS:
        uky(*words)
        uky(*words, json=False)
        assert below(tree) == before, words
    result = uky("status", json=False)
    assert result.code == 1
    assert "ledger.json is" in result.out
    assert "Next: uky-patch apply" in result.out
    report = uky("status").json["ledger"]
    assert (report["state"], report["restored"]) == ("missing" if how == "removed" else "damaged", ["verl/server.py"])
    assert [check["fix"] for check in uky("verify").json["checks"] if check["name"] == "ledger"] == ["uky-patch apply"]
    assert uky("apply").code == 0
    assert (tree / "verl/server.py").read_bytes() == patched
    assert uky("status").json["ledger"]["state"] == "ok"
    assert uky("status").code == 0
    assert uky("verify").code == 0
    assert uky("revert").code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


@pytest.mark.parametrize("words", [["revert"], ["revert", "--force"], ["revert", "log-flag", "utils-moved"]])
@pytest.mark.parametrize("how", LOSSES)
def test_a_revert_needs_no_ledger(uky: Uky, tree: Path, records: Path, how: str, words: list[str]) -> None:
    uky("apply")
    LOSSES[how](tree / ".uky-patch/ledger.json")
    for path in records.iterdir():
        path.unlink()
    assert uky(*words).code == 0
    assert (tree / "verl/server.py").read_text() == SERVER
    assert not (tree / ".uky-patch").exists()


def test_a_single_record_is_taken_out_without_a_ledger(uky: Uky, tree: Path) -> None:
    uky("apply", "utils-moved")
    one = (tree / "verl/server.py").read_bytes()
    uky("apply")
    (tree / ".uky-patch/ledger.json").unlink()
    assert uky("revert", "log-flag").code == 0
    assert (tree / "verl/server.py").read_bytes() == one


def test_hand_edits_are_still_refused_and_merged_without_a_ledger(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / ".uky-patch/ledger.json").unlink()
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "LIMIT = 3\n")
    assert uky("revert").code == 3
    assert uky("revert", "--merge").code == 0
    assert path.read_text() == SERVER + "LIMIT = 3\n"


def test_a_pre_image_that_is_gone_is_said_before_it_is_needed(uky: Uky, tree: Path) -> None:
    uky("apply")
    for path in (tree / ".uky-patch/originals").iterdir():
        path.unlink()
    status = uky("status")
    assert (status.code, status.json["ledger"]["missing"]) == (1, ["verl/server.py"])


def test_without_ledger_and_notes_nothing_is_guessed_and_nothing_removed(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / ".uky-patch/ledger.json").unlink()
    for note in (tree / ".uky-patch/originals").glob("*.json"):
        note.unlink()
    before = below(tree)
    for words in (["status"], ["apply"], ["revert"], ["revert", "--force"]):
        answer = uky(*words, json=False)
        assert answer.code == 5
        assert re.search(r"pre-images? (is|are) in .uky-patch/originals", answer.err)
        assert below(tree) == before
