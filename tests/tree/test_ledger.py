from __future__ import annotations

import json

import pytest

from patcher.errors import TreeError
from patcher.messages import phrase
from patcher.worktree.ledger import AppliedRecord, Ledger, PatchedFile, dump, parse
from tests.tree.toys import FILES, NEW, TARGETS, apply, contents, revert

LEDGER = Ledger(
    {"verl/a.py": PatchedFile("a" * 64, "b" * 64, ("one", "two"))},
    {"one": AppliedRecord('id = "one"\ntitle = "中"\n', {"vllm": "0.12.0"}, "2026-01-02T03:04:05+00:00")},
    {"inputs": "x", "seen": [1, None, {"a": True}]},
)


def test_a_ledger_is_what_was_written():
    assert parse(dump(LEDGER), "x") == LEDGER
    assert dump(parse(dump(LEDGER), "x")) == dump(LEDGER)
    assert LEDGER
    assert not Ledger()


def changed(**changes: object) -> bytes:
    return json.dumps({**json.loads(dump(LEDGER)), **changes}).encode()


DAMAGED = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    dump(LEDGER)[:-40],
    changed(format="1"),
    changed(format=True),
    changed(files=[]),
    changed(files={"verl/a.py": {"original": "../../etc/passwd", "patched": "b" * 64, "records": []}}),
    changed(records={"one": {"source": "other", "digest": "0" * 64, "versions": {}, "at": ""}}),
    changed(basis=[]),
    changed(tool=None),
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_ledger_is_an_error_and_is_not_overwritten_where_no_note_says_what_it_said(tree, content):
    apply(tree)
    place = tree.root / ".uky-patch/ledger.json"
    place.write_bytes(content)
    for note in (tree.root / ".uky-patch/originals").glob("*.json"):
        note.unlink()
    for act in (apply, revert):
        with pytest.raises(TreeError, match=r"ledger\.json: damaged") as caught:
            act(tree)
        assert caught.value.advice
    with pytest.raises(TreeError), tree.reading():
        pass
    assert place.read_bytes() == content
    assert len(list((tree.root / ".uky-patch/originals").iterdir())) == 4


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_ledger_is_made_again_from_the_pre_images_and_kept_aside(tree, content):
    apply(tree)
    before = tree.ledger()
    place = tree.root / ".uky-patch/ledger.json"
    place.write_bytes(content)
    with tree.reading() as reading:
        assert reading.account.damage == phrase("damaged")
        assert reading.account.restored == TARGETS
        assert (reading.ledger.files, reading.ledger.records) == (before.files, before.records)
    assert place.read_bytes() == content
    assert revert(tree) == TARGETS
    assert contents(tree) == FILES
    assert not (tree.root / ".uky-patch").exists()
    assert (tree.root / ".uky-patch-kept/ledger.json.1").read_bytes() == content


def test_a_newer_ledger_names_the_tool_that_wrote_it(tree):
    (tree.root / ".uky-patch").mkdir()
    place = tree.root / ".uky-patch/ledger.json"
    place.write_bytes(b'{"format": 2, "tool": "9.8.7", "novelty": {}}')
    with pytest.raises(TreeError, match=r"9\.8\.7") as caught:
        apply(tree)
    assert "Upgrade" in str(caught.value)
    assert place.read_bytes().startswith(b'{"format": 2')


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": 2}', b"[" * 100_000, b'{"format": 1, "steps": 3}'])
def test_a_damaged_journal_is_an_error_and_stays(tree, content):
    apply(tree)
    place = tree.root / ".uky-patch/journal.json"
    place.write_bytes(content)
    with pytest.raises(TreeError, match=r"journal\.json") as caught:
        revert(tree)
    assert caught.value.advice
    with tree.reading() as reading:
        assert reading.unfinished is not None
        assert set(tree.state(reading.ledger).values()) == {"as-applied"}
    assert place.read_bytes() == content


def test_a_journal_cannot_lead_out_of_the_tree(tree, tmp_path):
    (tmp_path / "outside.py").write_bytes(b"old")
    apply(tree)
    folder = tree.root / ".uky-patch"
    (folder / "staged").mkdir()
    (folder / "staged/0.new").write_bytes(b"new")
    from patcher.worktree.hashing import digest_of

    steps = [{"path": "../outside.py", "old": digest_of(b"old"), "new": digest_of(b"new")}]
    journal = {"format": 1, "tool": "x", "purpose": "x", "steps": steps, "ledger_old": None, "ledger_new": None}
    (folder / "journal.json").write_text(json.dumps(journal))
    with pytest.raises(TreeError, match="no path inside the tree"):
        apply(tree)
    assert (tmp_path / "outside.py").read_bytes() == b"old"


def test_each_state_of_a_file(tree):
    apply(tree)
    (tree.root / "verl/part0/module.py").unlink()
    (tree.root / "verl/part1/module.py").write_bytes(b"theirs")
    original = tree.pre_image(tree.ledger().files["verl/part2/module.py"].original)
    (tree.root / "verl/part2/module.py").write_bytes(original)
    (tree.root / NEW).unlink()
    states = ["missing", "tampered", "original", "as-applied", "original"]
    assert list(tree.state(tree.ledger()).values()) == states
