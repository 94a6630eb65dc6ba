"""`verify --ray` on a real cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cluster.conftest import Answer, Uky, words
from tests.cluster.particular import Node
from tests.cluster.processes import wait_for
from tests.cluster.raylets import RealCluster

pytestmark = pytest.mark.hosts
SECRET = "sk-not-to-be-seen-4711"


def apply_here(cluster: RealCluster, root: Path) -> None:
    assert run([*words(cluster, root=root), "apply"]) == 0


def start(cluster: RealCluster, *command: str, scratch: Path | None = None) -> subprocess.Popen[str]:
    whole = [sys.executable, "-m", "patcher", *words(cluster), *command, "--ray", cluster.address]
    environment = {**os.environ, **({"TMPDIR": str(scratch)} if scratch else {})}
    return subprocess.Popen(
        whole,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_nodes_that_are_alike_through_ray_client_and_on_the_machine_itself(
    cluster: RealCluster, uky: Uky, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fork", "source"):
        apply_here(cluster, cluster.folder / name)
    capsys.readouterr()
    with cluster.nodes("near", "far", near=Node(shared=True), far=Node(far=True)):
        done = uky("verify", address=cluster.client, json=False)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)  # What Ray takes for auto.
        assert uky("verify", address="auto").nodes.keys() == {"head", "near", "far"}
    assert done.code == 0, done.out + done.err
    lines = done.out.splitlines()
    assert lines[0].split()[:6] == ["node", "tree", "records", "verl", "vllm", "torch"]
    assert [line.split()[:1] + line.split()[2:5] for line in lines[1:4]] == [
        [name, "3", "99.1", "2.1"] for name in ("head", "far", "near")
    ]
    assert "*" not in done.out
    assert "3 records hold on all nodes" in done.out
    assert "one tree on shared storage: head, near" in done.out
    assert done.err == ""


def test_each_odd_node_is_named_with_what_is_odd(
    cluster: RealCluster, uky: Uky, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("fork", "source"):
        apply_here(cluster, cluster.folder / name)
    capsys.readouterr()
    other = cluster.folder / "other"
    for name in ("transformers", "transformers-9.9.9.dist-info"):
        (other / name).mkdir(parents=True, exist_ok=True)
    (other / "transformers/__init__.py").touch()
    (other / "transformers-9.9.9.dist-info/METADATA").write_text("Name: transformers\nVersion: 9.9.9\n")
    particular = {
        "edited": Node(after="echo '# by hand' >> verl/protocol.py"),
        "versions": Node(environment={"PYTHONPATH": str(other)}),
        "variable": Node(environment={"NCCL_DEBUG": "INFO", "NCCL_API_KEY": SECRET}),
        "pending": Node(tree="fresh"),
        "treeless": Node(tree=""),
        "hung": Node(held=True),
    }
    cluster.hold("hung")
    with cluster.nodes("alike", *particular, **particular):
        done = uky("verify", "--wait", "20")
        wait_for(lambda: not cluster.ours(), "the end of what runs there")
    assert done.code == 1
    bad = done.bad()
    assert {name: nodes for name, nodes in bad.items() if not name.startswith("variable PYTHONPATH")} == {
        "node hung": ["hung"],
        "node treeless": ["treeless"],
        "tree": ["edited", "pending"],
        "records": ["pending"],
        "version of transformers": ["versions"],
        "variable NCCL_DEBUG": ["variable"],
    }
    assert "edited: verl/protocol.py" in done.check("tree")["detail"]
    assert "versions: 9.9.9" in done.check("version of transformers")["detail"]
    assert "no answer in time" in done.check("node hung")["detail"]
    assert done.check("node treeless")["detail"].startswith(f"{cluster.tree}: no verl tree")
    assert {node["state"] for name, node in done.nodes.items() if name != "hung"} == {"answered"}
    assert done.nodes["alike"]["odd"] == []
    assert done.nodes["variable"]["variables"]["NCCL_DEBUG"] == "INFO"
    assert SECRET not in done.out + done.err
    assert all(node["seconds"] > 0 for name, node in done.nodes.items() if name != "hung")


def test_the_checks_above_the_markers_run_on_each_node(cluster: RealCluster, uky: Uky) -> None:
    with cluster.nodes("near"):
        # Both nodes are this machine: in its ten seconds each would have half of it to import torch and vLLM.
        done = uky("verify", "--level", "env", "--budget", "120")
    assert {name: node["state"] for name, node in done.nodes.items()} == {"head": "answered", "near": "answered"}
    env = {check["name"]: check["nodes"] for check in done.json["checks"] if check["level"] == "env"}
    assert {"data", "packages"} <= set(env)  # Of what is asked above the markers, only what is not in order is listed.
    assert {name: nodes for name, nodes in env.items() if nodes != ["head", "near"]} == {}


def test_a_node_that_is_killed_and_one_that_joins_while_they_are_asked(cluster: RealCluster, uky: Uky) -> None:
    cluster.hold("doomed")
    cluster.hold("slow")
    with cluster.nodes("doomed", "slow", doomed=Node(held=True), slow=Node(held=True)) as (doomed, _):
        asking = start(cluster, "verify")
        wait_for(lambda: cluster.reached("doomed") and cluster.reached("slow"), "both are asked")
        doomed.kill()
        with cluster.nodes("newcomer", newcomer=Node(held=True)):
            wait_for(lambda: cluster.reached("newcomer"), "the newcomer is asked")
            cluster.release("slow")
            out, err = asking.communicate(timeout=60)
    assert asking.returncode == 1
    assert err == ""
    done = Answer(asking.returncode, out, err)
    assert {name: (node["state"], node["added"]) for name, node in done.nodes.items()} == {
        "head": ("answered", False),
        "doomed": ("died", False),
        "newcomer": ("answered", True),
        "slow": ("answered", False),
    }
    assert "left the cluster" in done.check("node doomed")["detail"]
    assert done.check("node newcomer")["status"] == "warn"


def test_an_interrupt_ends_it_at_once_and_leaves_nothing(cluster: RealCluster, tmp_path: Path) -> None:
    cluster.hold("slow")
    with cluster.nodes("slow", slow=Node(held=True)):
        asking = start(cluster, "verify", scratch=tmp_path)
        wait_for(lambda: cluster.reached("slow"), "the node is asked")
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=60)
        assert (asking.returncode, err) == (130, "interrupted\n")
        assert json.loads(out)["error"]["code"] == 130
        cluster.release("slow")
        wait_for(lambda: not cluster.ours(), "the end of what runs there")
    assert not list(tmp_path.iterdir())
