"""Folders of the tree that somebody has replaced by links: nothing is written or removed where they lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.tree import Tree
from patcher.worktree import disk, files, layout
from tests.tree.toys import apply
from tests.worktree.test_files import PLANTED


@pytest.mark.parametrize("kind", [kind for kind in PLANTED if kind != "folder"])
def test_what_is_no_folder_keeps_nothing(kind: str, tmp_path: Path) -> None:
    PLANTED[kind](tmp_path / layout.KEPT)
    with pytest.raises(TreeError):
        Tree(tmp_path).keep("verl/a.py", b"x = 1\n")


def test_a_link_to_a_folder_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / layout.KEPT).symlink_to(tmp_path / "outside")
    with pytest.raises(TreeError):
        Tree(tmp_path / "tree").keep("verl/a.py", b"x = 1\n")
    assert list((tmp_path / "outside").iterdir()) == []


def test_compiled_files_elsewhere_stay(tree, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    source = next(path for path in sorted(tree.root.rglob("*.py")))
    for path in tree.root.rglob("*.py"):
        (outside / f"{path.stem}.cpython-311.pyc").write_bytes(b"somebody's")
        if not os.path.lexists(path.parent / "__pycache__"):
            (path.parent / "__pycache__").symlink_to(outside)
    before = sorted(outside.iterdir())
    apply(tree)
    assert sorted(outside.iterdir()) == before
    assert source.exists()


def test_an_endless_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"")
    os.truncate(tmp_path / "large", files.SOURCE_BYTES + 1)
    with pytest.raises(files.TooLargeError):
        disk.read(tmp_path / "large")
