"""Untrusted paths: nothing outside the tree is read or written."""

from __future__ import annotations

import os

import pytest

from patcher.errors import TreeError
from patcher.tree import Change, Ledger
from patcher.worktree.hashing import digest_of
from tests.tree.toys import apply, assert_settled

OUT = [
    "../outside.py",
    "verl/../../outside.py",
    "verl/../verl/__init__.py",
    "/etc/hostname",
    "//etc/hostname",
    "verl//__init__.py",
    "verl/./__init__.py",
    "./verl/__init__.py",
    "",
    ".",
    "..",
    "verl/",
    "verl\\__init__.py",
    "..\\outside.py",
    "C:/outside.py",
    "C:outside.py"[:2],
    "verl/__init__.py\0.txt",
    "verl/\n__init__.py",
    "verl/\x1b[31m.py",
    "verl/\udcff.py",
    ".git/config",
    ".GIT/config",
    "verl/.git/hooks/pre-commit",
    ".uky-patch/ledger.json",
    ".Uky-Patch/originals/x",
    "verl/" + "a" * 300 + ".py",
    "verl/" + "a/" * 3000 + "b.py",
]


@pytest.mark.parametrize("path", OUT, ids=lambda path: ascii(path)[:30])
def test_a_path_out_of_the_tree_is_refused(tree, path):
    (tree.root.parent / "outside.py").write_bytes(b"secret\n")
    with pytest.raises(TreeError) as caught:
        tree.read(path)
    assert caught.value.cause
    str(caught.value).encode()
    with pytest.raises(TreeError), tree.transaction("apply") as run:
        run.commit([Change(path, digest_of(b"secret\n"), b"overwritten\n")], Ledger())
    assert (tree.root.parent / "outside.py").read_bytes() == b"secret\n"
    assert assert_settled(tree) == "old"


@pytest.mark.parametrize("what", ["file", "parent", "absolute", "chain"])
def test_a_symlink_out_of_the_tree_is_refused(tree, tmp_path, what):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "module.py").write_bytes(b"secret\n")
    link, path = {
        "file": ("verl/link.py", "verl/link.py"),
        "absolute": ("verl/link.py", "verl/link.py"),
        "parent": ("verl/folder", "verl/folder/module.py"),
        "chain": ("verl/second", "verl/first/module.py"),
    }[what]
    target = outside if what in ("parent", "chain") else outside / "module.py"
    (tree.root / link).symlink_to(target if what == "absolute" else os.path.relpath(target, tree.root / "verl"))
    if what == "chain":
        (tree.root / "verl/first").symlink_to("second")
    with pytest.raises(TreeError, match="no path inside the tree"):
        tree.read(path)
    with pytest.raises(TreeError), tree.transaction("apply") as run:
        run.commit([Change(path, digest_of(b"secret\n"), b"x")], Ledger())
    assert (outside / "module.py").read_bytes() == b"secret\n"


def test_a_dangling_or_circular_symlink_is_no_file(tree):
    (tree.root / "verl/dangling.py").symlink_to("nowhere.py")
    (tree.root / "verl/circle.py").symlink_to("circle.py")
    (tree.root / "verl/outwards.py").symlink_to("/nonexistent/x.py")
    assert tree.read("verl/dangling.py") is None
    for path in ("verl/circle.py", "verl/outwards.py"):
        with pytest.raises(TreeError):
            tree.read(path)


@pytest.mark.parametrize("path", ["verl", "verl/pipe"])
def test_what_is_no_regular_file_is_refused_without_hanging(tree, path):
    os.mkfifo(tree.root / "verl/pipe")
    with pytest.raises(TreeError, match="cannot be read"):
        tree.read(path)


def test_a_missing_file_is_none(tree):
    assert tree.read("verl/gone.py") is None
    assert tree.read("gone/gone.py") is None
    assert tree.read("verl/__init__.py/x.py") is None


@pytest.mark.parametrize("name", ["", "originals", "staged"])
def test_the_tools_own_folder_as_a_symlink_is_refused(tree, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tree.root / ".uky-patch" / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(TreeError, match="must be a folder"):
        apply(tree)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["lock", "ledger.json", "journal.json"])
def test_the_tools_own_files_as_symlinks_are_refused(tree, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_bytes(b"{}")
    (tree.root / ".uky-patch").mkdir()
    (tree.root / ".uky-patch" / name).symlink_to(outside)
    with pytest.raises(TreeError):
        apply(tree)
    assert outside.read_bytes() == b"{}"
