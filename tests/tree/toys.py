"""A small tree, and a toy edit that can be applied to it and reverted; the records' own edits are tested elsewhere."""

from __future__ import annotations

from pathlib import Path

from patcher.tree import Change, Ledger, Tree
from patcher.tree.source import sha256_of
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.ledger import AppliedRecord, PatchedFile, now

MARK = b"# Uky[toy]\n"
FILES = {
    "verl/__init__.py": b"__version__ = '0'\n",
    **{f"verl/part{number}/module.py": f"VALUE = {number}\n".encode() * (20 + 90 * number) for number in range(4)},
}
"""The toy edit appends a line to the modules; `verl/__init__.py` it leaves alone."""
NEW = "verl/tools/deeper/module.py"
"""It makes this file, which needs two folders of its own."""
PATCHED = {**{path: content + (MARK if "module" in path else b"") for path, content in FILES.items()}, NEW: MARK}
TARGETS = tuple(path for path in PATCHED if "module" in path)
REPLACED = tuple(path for path in TARGETS if path in FILES)


def plant(root: Path) -> Tree:
    """Write the tree."""
    for path, content in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return Tree.open(root)


def contents(tree: Tree) -> dict[str, bytes]:
    """Each file below `verl/`."""
    found = (path for path in (tree.root / "verl").rglob("*") if path.is_file())
    return {path.relative_to(tree.root).as_posix(): path.read_bytes() for path in found}


def everything(tree: Tree) -> list[str]:
    """The path of each file and folder below the root."""
    found = (path.relative_to(tree.root).as_posix() for path in tree.root.rglob("*"))
    return sorted(path for path in found if not (tree.root / path).is_dir() or path.startswith(".uky-patch"))


def edit(tree: Tree, *paths: str, record: str = "toy") -> tuple[tuple[Change, ...], Ledger]:
    """The changes that append the mark to `paths`, and the ledger that goes with them."""
    changes, files = [], {}
    for path in paths:
        source = tree.read(path)
        new = (source.content if source is not None else b"") + MARK
        changes.append(Change(path, sha256_of(source), new))
        files[path] = PatchedFile(sha256_of(source), digest_of(new), (record,))
    return tuple(changes), Ledger(files, {record: AppliedRecord(f'id = "{record}"\n', {"verl": "0"}, now())})


def apply(tree: Tree, *paths: str, wait: float = 30.0) -> tuple[str, ...]:
    """Append the mark to each file that has none; do nothing on a tree that is patched already."""
    with tree.transaction("apply", wait=wait) as transaction:
        if transaction.ledger:
            return ()
        return transaction.commit(*edit(tree, *(paths or TARGETS)))


def revert(tree: Tree, *, wait: float = 30.0) -> tuple[str, ...]:
    """Put every pre-image back."""
    with tree.transaction("revert", wait=wait) as transaction:
        changes = tuple(
            Change(path, entry.patched, tree.original(entry)) for path, entry in transaction.ledger.files.items()
        )
        return transaction.commit(changes, Ledger())


def assert_whole(tree: Tree) -> None:
    """Every file is, to the byte, the old one or the new one."""
    for path, content in contents(tree).items():
        assert content in (FILES.get(path), PATCHED[path]), f"{path} is neither old nor new"


def assert_settled(tree: Tree) -> str:
    """The tree is all old with nothing left behind, or all new with the ledger that says so; returns which."""
    found = contents(tree)
    if found == FILES:
        assert everything(tree) == sorted(FILES), "something is left behind"
        assert not (tree.root / "verl/tools").exists(), "a folder is left behind"
        return "old"
    assert found == PATCHED
    ledger = tree.ledger()
    assert set(ledger.files) == set(TARGETS)
    assert tree.state(ledger) == dict.fromkeys(TARGETS, "as-applied")
    assert [tree.original(entry) for entry in ledger.files.values()] == [FILES.get(path) for path in TARGETS]
    assert ledger.files[NEW].folders == ("verl/tools", "verl/tools/deeper")
    kept = {path for path in everything(tree) if path.startswith(".uky-patch/")}
    before = {digest_of(FILES[path]) for path in TARGETS if path in FILES}
    needed = {f".uky-patch/originals/{sha}{part}" for sha in before for part in ("", ".json")}
    needed.add(f".uky-patch/originals/{ABSENT}.json")
    own = {".uky-patch/.gitignore", ".uky-patch/ledger.json", ".uky-patch/lock", ".uky-patch/originals"}
    assert kept == needed | own, "something is left behind"
    return "new"
