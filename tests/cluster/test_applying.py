"""`apply --ray` on a real cluster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from patcher.cli.app import run
from tests.cluster.conftest import Answer, Uky, bytes_of, words
from tests.cluster.particular import Node
from tests.cluster.processes import wait_for
from tests.cluster.raylets import RealCluster
from tests.cluster.test_looking import start

pytestmark = pytest.mark.hosts
WRITTEN = ["verl/server.py", "verl/worker.py"]


@pytest.fixture
def wanted(cluster: RealCluster, capsys: pytest.CaptureFixture[str]) -> dict[str, bytes]:
    """What an apply on this machine makes of the tree."""
    assert run([*words(cluster, root=cluster.folder / "fresh"), "apply"]) == 0
    capsys.readouterr()
    return bytes_of(cluster.folder / "fresh")


def test_each_tree_is_patched_once_as_an_apply_there_would(
    cluster: RealCluster, uky: Uky, wanted: dict[str, bytes]
) -> None:
    before = bytes_of(cluster.tree)
    with cluster.nodes("near", "far", "sharer", far=Node(far=True), sharer=Node(shared=True)) as (near, far, sharer):
        dry = uky("apply", "--dry-run", json=False)
        assert dry.code == 1
        assert "3 trees would change; nothing was written" in dry.out
        assert [bytes_of(root) for root in (cluster.tree, near.tree, far.tree)] == [before] * 3

        done = uky("apply")
        assert done.code == 0, done.out
        assert {name: node["written"] for name, node in done.nodes.items()} == {
            "head": WRITTEN,
            "far": WRITTEN,
            "near": WRITTEN,
            "sharer": [],
        }
        assert {name: node["shares"] for name, node in done.nodes.items()} == {
            "head": ["sharer"],
            "far": [],
            "near": [],
            "sharer": ["head"],
        }
        assert [bytes_of(root) for root in (cluster.tree, near.tree, far.tree, sharer.tree)] == [wanted] * 4
        ledgers = [json.loads((root / ".uky-patch/ledger.json").read_text()) for root in (cluster.tree, far.tree)]
        assert [sorted(ledger["files"]) for ledger in ledgers] == [WRITTEN, WRITTEN]

        again = uky("apply", json=False)
        assert again.code == 0
        assert "nothing to do" in again.out


def test_one_drifted_tree_and_nothing_is_written_anywhere(cluster: RealCluster, uky: Uky) -> None:
    before = bytes_of(cluster.tree)
    with cluster.nodes("near", "drifted", drifted=Node(after="sed -i s/Engine.start/Engine.begin/ verl/worker.py")) as (
        near,
        drifted,
    ):
        there = bytes_of(drifted.tree)
        done = uky("apply")
        assert done.code == 3
        assert list(done.nodes["drifted"]["failed"]) == ["log-flag-worker"]
        assert all(node["written"] == [] for node in done.nodes.values())
        assert [bytes_of(root) for root in (cluster.tree, near.tree, drifted.tree)] == [before, before, there]
        assert not (near.tree / ".uky-patch/ledger.json").exists()


def test_trees_that_are_held_read_only_or_not_there_are_told_and_the_others_patched(
    cluster: RealCluster, uky: Uky, wanted: dict[str, bytes]
) -> None:
    particular = {
        "locked": Node(after="mkdir .uky-patch && touch .uky-patch/lock"),
        "fixed": Node(after=f"mount -o remount,ro {cluster.tree}"),
        "treeless": Node(tree=""),
    }
    with cluster.nodes(*particular, **particular) as (locked, fixed, _):
        holder = subprocess.Popen(["flock", locked.tree / ".uky-patch/lock", "sleep", "infinity"], process_group=0)
        try:
            done = uky("apply", "--wait", "20")
        finally:
            subprocess.run(["kill", "--", f"-{holder.pid}"], check=False)
            holder.wait()
        assert done.code == 1
        assert {name: node["written"] for name, node in done.nodes.items() if node["written"]} == {"head": WRITTEN}
        assert "in use by another run of uky-patch" in done.check("node locked")["detail"]
        assert "read-only" in done.check("node fixed")["detail"].lower()
        assert set(done.bad()) >= {"node locked", "node fixed", "node treeless"}
        assert bytes_of(cluster.tree) == wanted
        assert bytes_of(locked.tree) == bytes_of(fixed.tree) == bytes_of(cluster.folder / "source")


def test_a_node_that_is_killed_while_it_writes(cluster: RealCluster, wanted: dict[str, bytes]) -> None:
    """It is reported and the others are done; its tree is taken up by the next run there."""
    cluster.hold("doomed")
    with cluster.nodes("near", "doomed", doomed=Node(held=True, at="worker.py")) as (near, doomed):
        asking = start(cluster, "apply")
        wait_for(lambda: cluster.reached("doomed"), "the second file's turn")
        doomed.kill()
        out, err = asking.communicate(timeout=90)
        done = Answer(asking.returncode, out, err)
        assert done.code == 1, err
        assert {name: node["state"] for name, node in done.nodes.items()} == {
            "head": "answered",
            "doomed": "died",
            "near": "answered",
        }
        assert bytes_of(cluster.tree) == bytes_of(near.tree) == wanted
        half = bytes_of(doomed.tree)
        assert half != wanted
        assert half["verl/server.py"] == wanted["verl/server.py"]
        recovered = doomed.do(sys.executable, "-m", "patcher", *words(cluster), "apply")
        assert "an interrupted apply was finished" in recovered.stderr
        assert bytes_of(doomed.tree) == wanted


def test_sixteen_nodes_of_which_one_is_odd(cluster: RealCluster, uky: Uky, wanted: dict[str, bytes]) -> None:
    names = [f"n{number}" for number in range(1, 16)]
    edited = Node(after="echo 'PROTOCOL = 2' > verl/protocol.py")
    with cluster.nodes(*names, n9=edited) as raylets:
        done = uky("apply")
        assert done.code == 1
        assert list(done.nodes) == ["head", *names]
        assert all(node["written"] == WRITTEN for node in done.nodes.values())
        assert all(bytes_of(raylet.tree) == wanted for raylet in raylets if raylet.name != "n9")
        assert done.bad() == {"tree": ["n9"]}
        assert done.check("tree")["detail"].startswith("n9: verl/protocol.py; 15 nodes have ")
