"""`watch --ray` on a real cluster: what hangs on another node is seen from here."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cluster.conftest import words
from tests.cluster.particular import Node
from tests.cluster.processes import wait_for
from tests.cluster.raylets import RealCluster

pytestmark = pytest.mark.hosts
JOB = """
import sys, threading, time
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(address=sys.argv[1], log_to_driver=False)
there = next(node["NodeID"] for node in ray.nodes() if node["NodeName"] == sys.argv[2])
@ray.remote(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(there, soft=False))
class Trainer:
    def wait_for_good(self):
        threading.Event().wait()
trainer = Trainer.remote()
ray.get(trainer.__ray_ready__.remote())  # Its process runs: on a busy machine that takes seconds.
answer = trainer.wait_for_good.remote()
time.sleep(1)
print("begun", flush=True)
ray.get(answer)
"""


@contextmanager
def hanging(cluster: RealCluster, where: str) -> Iterator[int]:
    """A driver on this machine whose actor on that node never answers."""
    program = cluster.folder / "job.py"
    program.write_text(JOB)
    log = cluster.folder / "job.log"
    with log.open("w") as stream:
        environment = {**os.environ, "PYTHONPATH": ""}
        process = subprocess.Popen(
            [cluster.python, program, cluster.address, where], stdout=stream, stderr=stream, env=environment, cwd="/"
        )
    try:
        wait_for(lambda: "begun" in log.read_text(), f"the job: {log.read_text()}")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def look(
    cluster: RealCluster, pid: int, capsys: pytest.CaptureFixture[str], address: str = ""
) -> tuple[list[dict[str, object]], str]:
    capsys.readouterr()
    run([*words(cluster), "watch", "--once", "--pid", str(pid), "--ray", address or cluster.address])
    result = capsys.readouterr()
    return json.loads(result.out)["stacks"]["groups"], result.err


def stuck(groups: list[dict[str, object]]) -> list[object]:
    return [group["hosts"] for group in groups if any("wait_for_good" in str(frame) for frame in group["frames"])]  # type: ignore[attr-defined]


def test_what_hangs_on_another_node(
    cluster: RealCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)  # What Ray takes for auto.
    with cluster.nodes("near", "apart", apart=Node(pids=True)), hanging(cluster, "apart") as pid:
        for address in (cluster.address, "auto"):
            groups, result = look(cluster, pid, capsys, address)
            assert stuck(groups) == [["apart"]]
            assert ["near"] not in [group["hosts"] for group in groups]
            assert result == ""


def test_a_cluster_that_cannot_be_joined(
    cluster: RealCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with cluster.nodes("near"), hanging(cluster, "near") as pid:
        monkeypatch.setattr("patcher.cluster.nodes.interpreter", lambda _: tmp_path / "python")
        (tmp_path / "python").write_text("#!/bin/sh\nexit 3\n")
        (tmp_path / "python").chmod(0o755)
        groups, result = look(cluster, pid, capsys)
    assert ["here"] in [group["hosts"] for group in groups]
    assert "other nodes are not looked at: the cluster was lost" in result
