"""Trees as version 0.1.0 left them, `older.json`: patched, and in the middle of an apply and of a migration."""

from __future__ import annotations

import json
from pathlib import Path

from patcher.tree import Change, Ledger, Tree
from patcher.worktree import manifest, placement

OLDER = json.loads(Path(__file__).with_name("older.json").read_text(encoding="utf-8"))
"""For each state, the text of each file by its path."""
ORIGINAL = {"verl/one.py": b"ONE = 1\n", "verl/two.py": b"TWO = 2\n"}


def lay_out(root: Path, state: str) -> Tree:
    for path, text in OLDER[state].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return Tree(root)


def revert(tree: Tree) -> None:
    with tree.transaction("revert") as transaction:
        files = transaction.ledger.files.items()
        changes = [Change(path, file.patched, tree.pre_image(file.original)) for path, file in files]
        transaction.commit(changes, Ledger())
    assert {path: (tree.root / path).read_bytes() for path in ORIGINAL} == ORIGINAL
    assert [path.name for path in tree.root.iterdir()] == ["verl"]


def test_a_patched_tree_is_understood_and_reverted(tmp_path: Path) -> None:
    tree = lay_out(tmp_path, "applied")
    assert tree.state(tree.ledger()) == dict.fromkeys(ORIGINAL, "as-applied")
    assert tree.ledger().records["toy"].source == 'id = "toy"\n'
    revert(tree)


def test_a_lost_ledger_is_made_again_from_the_notes(tmp_path: Path) -> None:
    tree = lay_out(tmp_path, "applied")
    before = tree.ledger()
    (tmp_path / ".uky-patch/ledger.json").unlink()
    assert tree.ledger().files == before.files
    revert(tree)


def test_an_apply_half_way_is_finished(tmp_path: Path) -> None:
    tree = lay_out(tmp_path, "apply half-way")
    with tree.reading() as reading:
        assert reading.recovered is not None
        assert (reading.recovered.direction, reading.recovered.purpose) == ("finished", "apply")
        assert tree.state(reading.ledger) == dict.fromkeys(ORIGINAL, "as-applied")
    revert(tree)


def test_a_migration_half_way_is_finished(tmp_path: Path) -> None:
    lay_out(tmp_path, "migration half-way")
    assert placement.recover(str(tmp_path))
    assert (tmp_path / "verl/a.py").read_text() == "a = 2\n"
    assert (tmp_path / "verl/b.py").read_text() == "b = 2\n"
    kept = tmp_path / ".uky-patch-kept/2026-01-31T10-20-30Z/verl"
    assert (kept / "a.py").read_text() == "theirs = 1\n"
    assert (kept / "gone.py").read_text() == "g = 1\n"
    found = manifest.read(str(tmp_path))
    assert found is not None
    assert {"verl/a.py", "verl/b.py"} <= found.files.keys()
    assert [path.name for path in (tmp_path / ".uky-patch/host").iterdir()] == ["manifest.json"]
    assert not placement.recover(str(tmp_path))
