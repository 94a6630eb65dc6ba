"""Which nodes have one tree."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from patcher.cluster import node as on_node
from patcher.cluster.model import Identity
from patcher.cluster.model import trees as grouped
from patcher.remote.agent.serving import Request, Server
from tests.cluster.made import facts, identity, node


def groups(*identities: dict[str, Any]) -> list[list[str]]:
    nodes = [node(f"n{number}", facts(identity=identity(**one))) for number, one in enumerate(identities)]
    return [[one.name for one in group] for group in grouped(nodes)]


def test_one_folder_of_one_kernel_is_one_tree() -> None:
    assert groups({}, {}, {"inode": 11}, {"device": 2}) == [["n0", "n1"], ["n2"], ["n3"]]


def test_cloned_disks_have_equal_inodes_and_are_not_one_tree() -> None:
    assert groups({"boot": "k1"}, {"boot": "k2"}) == [["n0"], ["n1"]]


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "fuse.juicefs", "ceph", "virtiofs"])
def test_shared_storage_is_one_tree_whatever_the_kernel_and_the_device(kind: str) -> None:
    far = {"kind": kind, "boot": "k2", "device": 77}
    assert groups({"kind": kind}, far, {**far, "inode": 11}, {**far, "born": 6}) == [["n0", "n1"], ["n2"], ["n3"]]


@pytest.mark.parametrize("kind", ["fuse.fuse-overlayfs", "fuseblk", "overlay", "tmpfs", "xfs"])
def test_what_looks_like_it_and_is_local_is_not(kind: str) -> None:
    assert groups({"kind": kind}, {"kind": kind, "boot": "k2"}) == [["n0"], ["n1"]]


def test_nodes_without_a_tree_are_in_no_group() -> None:
    assert grouped([node("a"), node("b", facts(identity=None)), node("c", facts())]) == ((node("c", facts()),),)


def test_a_trees_identity_is_that_of_the_folder_a_path_leads_to(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "verl").mkdir(parents=True)
    (tmp_path / "link").symlink_to("one")
    found = {name: Identity(**on_node.identity(tmp_path / name)) for name in ("one", "two", "link")}  # type: ignore[arg-type]
    assert found["one"] == found["link"] != found["two"]
    assert found["one"].inode == (tmp_path / "one/verl").stat().st_ino
    assert found["one"].kind


def test_contents_are_the_packages_files_without_pythons_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["node", ""])  # The verl that a worker imports: none.

    def contents(root: Path) -> dict[str, str]:
        args = {"root": str(root), "wait": 0, "files": [], "folders": []}
        request = Request(Server(-1, 0, {}), 1, "look", args, b"")
        return cast("dict[str, str]", on_node.look(request)["tree"]["contents"])

    names = ("verl/__init__.py", "verl/__pycache__/a.cpython-311.pyc", "recipe/b.yaml", "outputs/c.log", "verl/d.pyc")
    for name in names:
        (tmp_path / "one" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "one" / name).write_text(name)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    found = contents(tmp_path / "one")
    assert sorted(found) == ["recipe/b.yaml", "verl/__init__.py"]
    assert contents(tmp_path / "two") == found
    (tmp_path / "two/verl/__init__.py").write_text("other")
    assert contents(tmp_path / "two")["verl/__init__.py"] != found["verl/__init__.py"]
