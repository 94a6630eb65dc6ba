"""The ledger lost at every moment, in every way: no pre-image goes with it, and a revert puts every byte back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.tree import Change, Ledger, Tree
from patcher.tree.source import sha256_of
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import PatchedFile, dump
from tests.lanes import ALL_CASES, one_in
from tests.tree.faults import count, faults, fork, killed_at, wait_for
from tests.tree.test_crash import idle, status
from tests.tree.toys import (
    FILES,
    MARK,
    NEW,
    PATCHED,
    REPLACED,
    TARGETS,
    apply,
    assert_settled,
    contents,
    edit,
    plant,
    revert,
)

EDITED = TARGETS[1]
MINE = b"MINE = True\n"


def _folder(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.mkdir()
    (place / "something").write_bytes(b"theirs")


def _link(place: Path) -> None:
    place.unlink(missing_ok=True)
    (place.parent.parent / "elsewhere.json").write_bytes(dump(Ledger()))
    place.symlink_to("../elsewhere.json")


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": lambda place: place.unlink(missing_ok=True),
    "emptied": lambda place: place.write_bytes(b""),
    "truncated": lambda place: place.write_bytes(place.read_bytes()[:-20] if place.exists() else b"{"),
    "garbage": lambda place: place.write_bytes(b"\x00\xff garbage"),
    "a folder": _folder,
    "a link": _link,
    "no files": lambda place: place.write_bytes(dump(Ledger())),
}


def lose(tree: Tree, how: str) -> None:
    """Damage the ledger in place, as somebody else would; nothing where there is none."""
    if (tree.root / ".uky-patch/ledger.json").exists():
        LOSSES[how](tree.root / ".uky-patch/ledger.json")


def apply_more(tree: Tree) -> None:
    """Patch two files, then those anew and the others too."""
    with tree.transaction("apply") as transaction:
        changes, files = [], dict(transaction.ledger.files)
        for path in TARGETS:
            there = sha256_of(tree.read(path))
            known = files.get(path)
            original = known.original if known is not None else there
            new = FILES.get(path, b"") + MARK + MARK
            files[path] = PatchedFile(original, digest_of(new), ("toy",), 0o644)
            changes.append(Change(path, there, new))
        transaction.commit(changes, replace(transaction.ledger, files=files))


def revert_one(tree: Tree) -> None:
    with tree.transaction("revert") as transaction:
        known = transaction.ledger.files[EDITED]
        change = Change(EDITED, known.patched, tree.pre_image(known.original))
        transaction.commit([change], transaction.ledger.without([EDITED]))


def merge(tree: Tree) -> None:
    """Take a hand edit over into the base, as `apply --merge` does: the pre-image is another one then."""
    with tree.transaction("apply") as transaction:
        base = MINE + FILES[EDITED]
        files = {**transaction.ledger.files, EDITED: PatchedFile(digest_of(base), digest_of(base + MARK), ("toy",))}
        source = tree.read(EDITED)
        assert source is not None
        change = Change(EDITED, source.sha256, base + MARK)
        transaction.commit([change], replace(transaction.ledger, files=files), originals={digest_of(base): base})


ACTS = {"apply": apply, "apply more": apply_more, "revert": revert, "revert one": revert_one, "merge": merge}


def stride(how: str) -> int:
    """Every moment where the ledger is gone, each third where it is cut off, an eighth of them for what is told apart
    by the same code; all with UKY_PATCH_ALL_CASES=1."""
    return 1 if ALL_CASES else {"removed": 1, "truncated": 3}.get(how, 8)


def start(tmp_path: Path, name: str) -> Tree:
    shutil.rmtree(tmp_path / "fork", ignore_errors=True)
    (tmp_path / "fork").mkdir()
    tree = plant(tmp_path / "fork")
    if name == "apply more":
        apply(tree, *TARGETS[:2])
    elif name != "apply":
        apply(tree)
    if name == "merge":
        (tree.root / EDITED).write_bytes(MINE + FILES[EDITED] + MARK + b"# changed\n")
    return tree


def pre_images(tree: Tree) -> set[bytes]:
    """What is kept below the tool's folder, wherever."""
    return {path.read_bytes() for path in (tree.root / ".uky-patch").rglob("*") if path.is_file()}


def assert_none_is_lost(tree: Tree) -> None:
    held = pre_images(tree)
    for path, content in contents(tree).items():
        if path == NEW:
            continue  # Before the first record it is not there.
        merged = path == EDITED and content.startswith(MINE) and MINE + FILES[path] in held
        assert content == FILES[path] or FILES[path] in held or merged, path


def assert_comes_back(tree: Tree, name: str) -> None:
    """A look removes nothing; then a plain revert gives every byte back, and that of the merged file its own."""
    before = pre_images(tree)
    journal = (tree.root / ".uky-patch/journal.json").exists()
    status(tree)
    if not journal:
        assert pre_images(tree) == before
    assert_none_is_lost(tree)
    if name == "merge":
        entry = tree.ledger().files[EDITED]
        there = (tree.root / EDITED).read_bytes()
        assert tree.pre_image(entry.original) == (MINE + FILES[EDITED] if there.endswith(MARK) else FILES[EDITED])
        with tree.transaction("revert") as transaction:
            changes = [
                Change(path, sha256_of(tree.read(path)), tree.original(known))
                for path, known in transaction.ledger.files.items()
            ]
            transaction.commit(changes, Ledger())
        assert contents(tree)[EDITED] in (FILES[EDITED], MINE + FILES[EDITED])
        (tree.root / EDITED).write_bytes(FILES[EDITED])
    elif contents(tree) != FILES:
        revert(tree)
    assert contents(tree) == FILES


SOME_AT_ONCE = [how if how == "removed" else pytest.param(how, marks=pytest.mark.slow, id=how) for how in LOSSES]
"""Each costs seconds at every moment of a run; the rest is in the slow lane."""


@pytest.mark.parametrize("how", SOME_AT_ONCE)
@pytest.mark.parametrize("name", one_in(len(ACTS), ACTS))
def test_a_run_is_killed_and_then_the_ledger_is_lost(tmp_path, name, how):
    act = ACTS[name]
    tree = start(tmp_path, name)
    total = count(lambda: act(tree))
    for at in range(0, total, stride(how)):
        tree = start(tmp_path, name)
        assert killed_at(at, lambda: act(tree))  # noqa: B023
        lose(tree, how)
        assert_none_is_lost(tree)
        assert_comes_back(tree, name)


@pytest.mark.parametrize("how", SOME_AT_ONCE)
@pytest.mark.parametrize("name", one_in(len(ACTS), ACTS))
def test_the_ledger_is_lost_while_a_run_goes_on(tmp_path, name, how):
    act = ACTS[name]
    tree = start(tmp_path, name)
    total = count(lambda: act(tree))
    for at in range(0, total, stride(how)):
        tree = start(tmp_path, name)
        try:
            with faults(at, lambda: lose(tree, how), torn=False):  # noqa: B023
                act(tree)
        except TreeError:
            pass
        assert_none_is_lost(tree)
        assert_comes_back(tree, name)


@pytest.mark.slow
@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("name", ["apply", "revert", "merge"])
def test_a_recovery_is_killed_and_then_the_ledger_is_lost(tmp_path, name, how):
    act = ACTS[name]
    tree = start(tmp_path, name)
    total = count(lambda: act(tree))
    struck = 0
    for at in range(0, total, 7):
        for second in range(0, 60, 2 * stride(how)):
            tree = start(tmp_path, name)
            assert killed_at(at, lambda: act(tree))  # noqa: B023
            if not killed_at(second, lambda: idle(tree)):  # noqa: B023
                break
            struck += 1
            lose(tree, how)
            assert_none_is_lost(tree)
            assert_comes_back(tree, name)
    assert struck > 5


@pytest.mark.parametrize("how", LOSSES)
def test_the_ledger_is_lost_at_rest_and_nothing_that_looks_or_does_nothing_removes_a_thing(tree, how):
    apply(tree)
    lose(tree, how)
    before = pre_images(tree)
    for look in (status, idle, status):
        look(tree)
        assert pre_images(tree) == before
    with tree.reading() as reading:
        assert reading.account.damage is not None
        assert reading.account.restored == TARGETS
    assert revert(tree) == TARGETS
    assert contents(tree) == FILES
    assert how != "a folder" or (tree.root / ".uky-patch-kept/ledger.json.1/something").read_bytes() == b"theirs"
    assert how != "a link" or (tree.root / "elsewhere.json").read_bytes() == dump(Ledger())


@pytest.mark.parametrize("how", LOSSES)
def test_the_next_change_writes_the_ledger_anew(tree, how):
    apply(tree)
    whole = tree.ledger()
    lose(tree, how)
    with tree.transaction("apply") as transaction:
        transaction.commit((), transaction.ledger)
    shutil.rmtree(tree.root / ".uky-patch-kept", ignore_errors=True)
    assert tree.storage.read_ledger() == whole
    assert assert_settled(tree) == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_ledger_that_may_not_be_read_costs_nothing(tree):
    apply(tree)
    for path in (tree.root, *tree.root.rglob("*")):
        os.chown(path, 65534, 65534)
    for folder in (tree.root, *tree.root.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (tree.root / ".uky-patch/ledger.json").chmod(0)
    before = pre_images(tree)

    def child() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        for act in (status, idle, apply, revert):
            with pytest.raises(TreeError, match=r"ledger\.json: cannot be read") as caught:
                act(tree)
            assert caught.value.advice

    assert wait_for(fork(child)) == 0
    assert pre_images(tree) == before
    (tree.root / ".uky-patch/ledger.json").chmod(0o644)
    assert revert(tree) == TARGETS
    assert assert_settled(tree) == "old"


def test_a_newer_ledger_costs_nothing(tree):
    apply(tree)
    place = tree.root / ".uky-patch/ledger.json"
    content = json.dumps({**json.loads(place.read_bytes()), "format": 2, "tool": "9.8.7"}).encode()
    place.write_bytes(content)
    before = pre_images(tree)
    for act in (status, idle, apply, revert):
        with pytest.raises(TreeError, match=r"9\.8\.7"):
            act(tree)
    assert pre_images(tree) == before


def test_a_ledger_from_a_backup_is_completed(tree):
    """Two files patched, a backup of the ledger made, the others patched and the first anew: the backup comes back."""
    apply(tree, *TARGETS[:2])
    backup = (tree.root / ".uky-patch/ledger.json").read_bytes()
    apply_more(tree)
    (tree.root / ".uky-patch/ledger.json").write_bytes(backup)
    with tree.reading() as reading:
        assert reading.account.restored == TARGETS
        assert reading.account.damage is None
    assert revert(tree) == TARGETS
    assert assert_settled(tree) == "old"


def test_the_ledger_of_another_tree_costs_nothing(tree, tmp_path):
    other = plant(tmp_path)
    (other.root / EDITED).write_bytes(b"another\n")
    apply(other)
    apply(tree)
    shutil.copy(other.root / ".uky-patch/ledger.json", tree.root / ".uky-patch/ledger.json")
    assert tree.ledger().files[EDITED].original == digest_of(FILES[EDITED])
    assert revert(tree) == TARGETS
    assert assert_settled(tree) == "old"


def test_what_the_ledger_does_not_know_stays(tree):
    apply(tree)
    strange = tree.root / ".uky-patch/originals"
    (strange / "notes.txt").write_bytes(b"theirs")
    (strange / ("a" * 64)).write_bytes(b"theirs too")
    (strange / ("b" * 64 + ".json")).write_bytes(b"[")
    status(tree)
    assert revert(tree) == TARGETS
    assert contents(tree) == FILES
    assert sorted(path.name for path in strange.iterdir()) == ["a" * 64, "b" * 64 + ".json", "notes.txt"]


def test_a_pre_image_without_note_gets_one_with_the_next_change(tree):
    """As the version before wrote them."""
    apply(tree)
    for note in (tree.root / ".uky-patch/originals").glob("*.json"):
        note.unlink()
    assert contents(tree) == PATCHED
    status(tree)
    apply_more(tree)
    (tree.root / ".uky-patch/ledger.json").unlink()
    assert revert(tree) == TARGETS
    assert assert_settled(tree) == "old"


def test_the_journal_of_the_version_before_is_understood(tree):
    """It named no pre-images, and those of a full revert went once it was done."""
    apply(tree, *REPLACED)
    folder = tree.root / ".uky-patch"
    (folder / "staged").mkdir()
    steps = []
    for number, path in enumerate(REPLACED):
        (folder / f"staged/{number}.new").write_bytes(FILES[path])
        shutil.copy(tree.root / path, folder / f"staged/{number}.old")
        steps.append({"path": path, "old": digest_of(PATCHED[path]), "new": digest_of(FILES[path])})
    shutil.copy(folder / "ledger.json", folder / "staged/ledger.old")
    told = {"format": 1, "tool": "1", "purpose": "revert", "steps": steps, "ledger_new": None}
    told["ledger_old"] = digest_of((folder / "ledger.json").read_bytes())
    (folder / "journal.json").write_text(json.dumps(told))
    status(tree)
    assert contents(tree) == FILES
    idle(tree)
    assert assert_settled(tree) == "old"


def test_notes_say_what_a_pre_image_is(tree):
    changes, ledger = edit(tree, EDITED)
    files = {EDITED: replace(ledger.files[EDITED], mode=0o644, release="0.6.0")}
    with tree.transaction("apply") as transaction:
        transaction.commit(changes, replace(ledger, files=files))
    sha256 = digest_of(FILES[EDITED])
    note = json.loads((tree.root / f".uky-patch/originals/{sha256}.json").read_bytes())
    assert note["sha256"] == sha256
    assert note["states"][0]["files"] == {
        EDITED: {
            "original": sha256,
            "patched": digest_of(PATCHED[EDITED]),
            "records": ["toy"],
            "mode": 0o644,
            "release": "0.6.0",
        }
    }
    assert note["states"][0]["records"]["toy"]["versions"] == {"verl": "0"}
