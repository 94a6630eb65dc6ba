"""A cluster whose jobs Slurm starts: a real one, with its login node behind a real sshd."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patcher.packages.releases import sources
from tests import forks, machines, pythons, slurm
from tests.conftest import require
from tests.lanes import ALL_CASES
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.cuts import STEPS, WORDS
from tests.migrate.moving import Mover, Site
from tests.migrate.test_end_to_end import show
from tests.preflight.conftest import open_folder, runtime, toy
from tests.remote import cutting
from tests.remote.cutting import Fault
from tests.slurm import Slurm

__all__ = ["open_folder", "runtime", "toy"]

pytestmark = [pytest.mark.network, pytest.mark.hosts]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    require(slurm.why_not())
    with slurm.cluster() as made:
        yield made


@pytest.fixture(scope="module")
def login(cluster: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The login node, with an environment whose metadata says vLLM."""
    require(machines.why_not())
    folder = tmp_path_factory.mktemp("login")
    with machines.machine(folder, "login", variables={"SLURM_CONF": str(cluster.conf)}) as made:
        moving.packages(made)
        _faulty_sbatch(made)
        yield made
        cluster.clear()


@pytest.fixture
def site(cluster: Slurm, login: Machine, tmp_path: Path) -> Iterator[Site]:
    """A small fork on its way to the cluster, with a job that counts seconds and says where it is."""
    tree = forks.fork(tmp_path / f"fork-{uuid.uuid4().hex[:6]}", small=True)
    (tree / "job.sh").write_text(COUNTS)
    yield Site(login, Mover(tree, tmp_path / "state", login.shims))
    befall(login, "")
    cluster.clear()


FAULTY = """\
#!/bin/sh
how=$(cat "${0%/*}/how")
[ "$how" != killed-before ] || { kill -KILL "$PPID"; exit 1; }
answer=$(/usr/bin/sbatch "$@") || exit
case $how in
killed-after) kill -KILL "$PPID" ;;
late) echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1 ;;
esac
echo "$answer"
"""
"""The cluster's sbatch, and what may befall who calls it: killed before the job is taken or after, or not answered."""


def _faulty_sbatch(login: Machine) -> None:
    login.do("sh", "-c", 'mkdir tools && printf %s "$0" > tools/sbatch && chmod 755 tools/sbatch', FAULTY)
    login.do("sh", "-c", "echo 'PATH=\"$HOME/tools:$PATH\"' > .bash_profile")
    befall(login, "")


def befall(login: Machine, how: str) -> None:
    """What befalls whoever calls sbatch from now on: "" for nothing."""
    login.do("sh", "-c", 'echo "$0" > tools/how', how)


COUNTS = """\
#!/bin/bash
echo "on $SLURMD_NODENAME of $SLURM_JOB_NUM_NODES, key ${WANDB_API_KEY:+set}, setup ${LOADED:-not run}"
for second in $(seq "${1:-600}"); do echo "second $second"; sleep 1; done
"""


def table(site: Site, **keys: object) -> None:
    """The host's table, with these keys beside the usual ones."""
    wanted = {"scheduler": "slurm", "time": "10", "script": "job.sh", "secrets": ["WANDB_API_KEY"], **keys}
    lines = [f"{name} = {json.dumps(value)}" for name, value in wanted.items()]
    (site.mover.tree / "uky-patch.toml").write_text("\n".join(["[hosts.login]", *lines, ""]))


def status(site: Site) -> Any:
    return site.mover.run("job", "status", "login").json["job"]


def until(site: Site, state: str, within: float = 60) -> Any:
    deadline = time.monotonic() + within
    while (found := status(site))["state"] != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.3)
    return found


def test_a_job_waits_runs_is_requeued_and_cancelled(cluster: Slurm, site: Site) -> None:
    table(site, partition="low", nodes=2, setup=["export LOADED=yes"], sbatch=["--requeue", "--comment=it's"])
    site.mover.env["WANDB_API_KEY"] = KEY
    told = site.mover.migrate("login", "--until", "verify")
    assert told.code == 0, told.text
    blocker = cluster.fill(600)
    assert site.mover.run("run", "debug", "--host", "login", "--detach").code == 0
    waits = until(site, "queued")
    assert waits["queue"]["state"] == "PENDING"
    assert "waits in Slurm's queue" in waits["detail"]
    refused = site.mover.run("run", "debug", "--host", "login", "--detach")
    assert refused.code == 5, refused.text
    cluster.ask("scancel", blocker)
    until(site, "running")
    job, number = status(site), waits["queue"]["id"]
    log = Path(job["log"])
    assert "on n1 of 2, key set, setup yes" in log.read_text()
    written = [path for path in log.parent.rglob("*") if path.is_file() and KEY in path.read_text(errors="replace")]
    assert written == [], "a secret was written"
    assert "it's" in cluster.ask("scontrol", "show", "job", number)

    cluster.fill(3, "--partition=debug")
    until(site, "queued")
    again = until(site, "running")
    assert again["queue"]["restarts"] == 1
    assert "Slurm has started this job again (restart 1)" in log.read_text()

    stopped = site.mover.run("job", "stop", "login")
    assert stopped.code == 0, stopped.text
    assert (stopped.json["was"], stopped.json["job"]["state"]) == ("running", "stopped")
    assert cluster.ask("squeue", "--noheader", f"--jobs={number}").strip() == ""
    assert status(site)["verdict"] == "stopped"


def test_the_time_limit_a_cancelled_wait_and_options_that_slurm_refuses(cluster: Slurm, site: Site) -> None:
    table(site, time="5")
    told = site.mover.migrate("login", "--until", "verify")
    assert told.code == 0, told.text
    assert site.mover.run("run", "debug", "--host", "login", "--detach").code == 0
    first = until(site, "running")
    # Slurm looks at limits every half minute only: meanwhile the rest.
    cluster.ask("scontrol", "update", f"JobId={first['queue']['id']}", "EndTime=now+1")

    table(site, partition="nowhere")
    refused = site.mover.run("run", "debug", "--host", "login", "--detach", "--share")
    checks = site.mover.run("verify", "--host", "login", "--level", "env")
    for told in (refused, checks):
        assert told.code == 5, told.text
        assert "invalid partition" in json.dumps(told.json)

    table(site, nodes=2, sbatch=["--begin=now+3600"])
    assert site.mover.run("run", "debug", "--host", "login", "--detach", "--share").code == 0
    assert until(site, "queued")["queue"]["reason"] == "BeginTime"
    assert site.mover.run("job", "stop", "login").json["job"]["state"] == "stopped"

    ended = site.mover.run("job", "attach", "login", "--id", first["id"])
    assert ended.code == 1, ended.text
    assert "the time limit of" in ended.json["job"]["detail"], ended.text
    assert "second 2" in site.mover.run("job", "logs", "login", "--id", first["id"]).json["text"]


def of_ours(cluster: Slurm, blocker: str = "") -> list[str]:
    """The jobs that wait or run and are none of those that fill the nodes."""
    return [number for number in cluster.ask("squeue", "--noheader", "--format=%i").split() if number != blocker]


@pytest.mark.parametrize("how", ["killed-before", "killed-after", "late"])
def test_whoever_hands_a_job_over_is_killed_or_not_answered(cluster: Slurm, site: Site, how: str) -> None:
    """A job that Slurm took is known, however its being handed over ended; one that it did not take is not there."""
    table(site)
    assert site.mover.migrate("login", "--until", "verify").code == 0
    blocker = cluster.fill(600)
    befall(site.machine, how)
    told = site.mover.run("run", "debug", "--host", "login", "--detach")
    befall(site.machine, "")
    assert told.code == (0 if how == "late" else 5), told.text
    if how == "killed-before":
        assert of_ours(cluster, blocker) == []
        assert status(site)["state"] == "starting"
        assert site.mover.run("run", "debug", "--host", "login", "--detach", "--share").code == 0
    found = until(site, "queued")
    assert of_ours(cluster, blocker) == [found["queue"]["id"]]
    again = site.mover.run("run", "debug", "--host", "login", "--detach")
    assert (again.code, "a job of this tree is running" in again.text) == (5, True), again.text
    assert site.mover.run("job", "stop", "login").json["job"]["state"] == "stopped"
    assert of_ours(cluster, blocker) == []


def test_the_agent_is_killed_and_the_controller_dies_while_a_migration_starts_its_job(
    cluster: Slurm, site: Site
) -> None:
    """The migration finds the job that it handed over, starts no second one, and follows it to its end."""
    table(site)
    (site.mover.tree / "job.sh").write_text("echo begun; until [ -e ~/may-end ]; do sleep 0.1; done; echo ended\n")
    assert site.mover.migrate("login", "--until", "verify").code == 0
    blocker = cluster.fill(600)
    befall(site.machine, "killed-after")
    process = site.mover.start("migrate", "login", "--only", "job")
    deadline = time.monotonic() + 30
    while not of_ours(cluster, blocker) and time.monotonic() < deadline:
        time.sleep(0.1)
    befall(site.machine, "")
    with cluster.no_controller():
        time.sleep(2)
    cluster.ask("scancel", blocker)
    until(site, "running")
    with cluster.no_controller():
        away = status(site)
        assert away["state"] == "running", away
    site.machine.do("touch", "may-end")
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in out + err
    assert process.returncode == 0, out + err
    log = json.loads(out)["job"]["log"]
    assert Path(log).read_text().split() == ["begun", "ended"]
    assert len([one for one in Path(log).parents[1].iterdir() if (one / "job.json").exists()]) == 1
    assert of_ours(cluster) == []


def test_a_line_that_is_cut_between_any_two_steps(cluster: Slurm, site: Site) -> None:
    """Each migration goes on by itself, brings what has changed, and starts one job."""
    table(site)
    tree = site.mover.tree
    (tree / "job.sh").write_text("echo begun\n")
    settings = tree / "uky-patch.toml"
    settings.write_text(settings.read_text().replace("[hosts.login]", "[hosts.line]"))
    with cutting.line(site.machine, "line") as line:
        for count, step in enumerate(STEPS, 1):
            forks.edit(tree / "README.md", lambda text: text + "more\n")
            told = []
            with site.mover.start("migrate", "line", *WORDS, "--only", "job", fmt="text") as process:
                assert process.stdout is not None
                for text in process.stdout:
                    told.append(text)
                    if text.split()[:1] == [step]:
                        line.drop()
            assert process.returncode == 0, "".join(told)
            assert (site.there / "README.md").read_bytes() == (tree / "README.md").read_bytes()
            jobs = [one for one in (site.there / ".uky-patch/host/jobs").iterdir() if (one / "job.json").exists()]
            assert len(jobs) == count
    assert of_ours(cluster) == []


def test_checks_whose_line_is_cut_leave_no_job_in_the_queue(cluster: Slurm, site: Site) -> None:
    table(site)
    assert site.mover.migrate("login", "--until", "verify").code == 0
    blocker = cluster.fill(600)
    with cutting.line(site.machine, "line") as line:
        settings = site.mover.tree / "uky-patch.toml"
        settings.write_text(settings.read_text().replace("[hosts.login]", "[hosts.line]"))
        process = site.mover.start("migrate", "line", "--only", "environment")
        deadline = time.monotonic() + 60
        while not of_ours(cluster, blocker) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert of_ours(cluster, blocker), "srun waits in the queue"
        line.set(Fault(after=0))
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in out + err
        assert process.returncode == 5, out + err
    site.machine.quiet()
    assert of_ours(cluster, blocker) == []


@pytest.mark.skipif(
    not ALL_CASES,
    reason="Ray on two nodes of one machine takes minutes beside other tests: UKY_PATCH_ALL_CASES=1 make test-hosts",
)
def test_from_nothing_to_a_ray_cluster_on_two_nodes(
    cluster: Slurm, login: Machine, runtime: Path, toy: Path, open_folder: Path, tmp_path: Path
) -> None:
    with pythons.environment_open_to_all(runtime, open_folder) as python:
        tree = tmp_path / "fork"
        tree.mkdir()
        forks.git(tree, "init", "--quiet", "--initial-branch=main")
        shutil.copytree(sources("verl", "0.9.1") / "verl", tree / "verl", copy_function=shutil.copyfile)
        (tree / "verl/trainer/main_ppo.py").write_text(ON_EVERY_NODE)
        forks.commit(tree, "verl 0.9.1")
        site = Site(login, Mover(tree, tmp_path / "state", login.shims))
        places = {"python": str(python), "data": str(toy), "models": f"{toy}/model"}
        table(site, nodes=2, **places)
        settings = tree / "uky-patch.toml"
        text = settings.read_text().replace('script = "job.sh"\n', "")
        settings.write_text(f'{text}[hosts.login.env]\nRAY_HEAD_OPTIONS = "--include-dashboard=false"\n')
        told = site.mover.migrate("login", within=240)
        show(told)
        assert told.code == 1, told.steps["environment"]
        assert told.statuses["environment"] in ("ok", "warn"), told.text
        assert "no GPU is visible where the job would run" in told.steps["job"]["detail"]
        told = site.mover.migrate("login", "--only", "job", "--force", within=240)
        assert told.code == 0, told.text
        log = Path(told.json["job"]["log"]).read_text()
        assert "trainer.nnodes=2 on ['n1', 'n2'], alive: 2" in log, log
    assert not [line for line in cluster.ask("squeue", "--noheader").splitlines() if line.strip()]


ON_EVERY_NODE = """\
import os, sys, time
import ray
ray.init()
@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def node():
    time.sleep(1)
    return os.environ["SLURMD_NODENAME"]
nodes = sorted(set(ray.get([node.remote() for _ in range(8)])))
asked = next(word for word in sys.argv if "nnodes" in word)
print(f"{asked} on {nodes}, alive: {sum(one['Alive'] for one in ray.nodes())}", flush=True)
"""
KEY = "0123456789abcdef0123456789abcdef01234567"
