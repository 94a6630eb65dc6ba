"""A job that Slurm starts, with stand-ins for its commands: what they print was printed by Slurm 22.05.

A real Slurm is in tests/migrate/test_slurm.py.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patcher.jobs.agent import folder, queued
from patcher.jobs.follow_log import verdict_of
from patcher.jobs.job import Verdict, job_of
from patcher.logs.milestones import Milestones
from patcher.remote.agent import slurm
from patcher.remote.channel import RefusedError
from patcher.remote.slurm import Slurm
from patcher.secrets.redacting import Redactor
from tests.jobs.conftest import Site

SHOWN = (
    "JobId=7 JobName={name} UserId=me(1000) GroupId=me(1000) MCS_label=N/A Priority=4294901757 Nice=0 Account=(null) "
    "QOS=(null) JobState={state} Reason={reason} Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 "
    "ExitCode={code} RunTime=00:00:00 TimeLimit=01:00:00 TimeMin=N/A Partition=debug AllocNode:Sid=login:1 "
    "ReqNodeList=(null) ExcNodeList=(null) NodeList={nodes} NumNodes=2-2 Comment=JobState=FAILED\n"
)
"""What `scontrol --oneliner show job` prints."""
NAME = "20261123-005844-9f01c2"
Say = Callable[..., None]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """A function that sets what Slurm says of job 7 from now on. Without a state it has forgotten the job."""
    programs = tmp_path / "slurm"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(queued, "_asked", {})
    monkeypatch.setattr(queued, "_searched", {})

    def program(name: str, script: str) -> None:
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)

    def set_to(state: str = "", reason: str = "None", error: str = "", **more: str) -> None:
        said = SHOWN.format(
            **{"name": f"uky-{NAME}", "state": state, "reason": reason, "code": "0:0", "nodes": "(null)", **more}
        )
        (tmp_path / "said").write_text(said)
        error = error or ("" if state else "slurm_load_jobs error: Invalid job id specified")
        program("scontrol", f"echo '{error}' >&2; exit 1" if error else f"cat {tmp_path}/said")
        program("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")

    return set_to


def job(tmp_path: Path, end: dict[str, Any] | None = None, **noted: object) -> Path:
    """The folder of a job that has been handed to Slurm, and perhaps noted its end."""
    at = tmp_path / NAME
    at.mkdir()
    (at / "job.json").write_text(json.dumps({"ordered": time.time() - 600, "root": "/fork", **noted}))
    (at / "slurm.json").write_text(json.dumps({"id": "7"}))
    (at / "log").write_text("second 1\n")
    if end is not None:
        (at / "end.json").write_text(json.dumps({"ended": time.time(), "seconds": 9.0, **end}))
    return at


def verdict(at: Path) -> Verdict:
    """What a user is told."""
    state = folder.look(str(at))
    assert state["queue"]["id"] == "7"
    return verdict_of(job_of(state), Milestones(), 0, Redactor())


# Slurm's SIGTERM may come to the job first, and a training may make an exit code of it.
@pytest.mark.parametrize(
    "end",
    [
        {"code": -15, "told": False},
        {"code": 1, "told": False},
        {"code": 0, "told": True},
        {"code": -9, "told": True},
    ],
)
def test_a_job_that_was_killed_to_be_started_again_has_not_ended(tmp_path: Path, say: Say, end: dict[str, Any]) -> None:
    at = job(tmp_path, end)
    say("PENDING", "BeginTime")
    waits = verdict(at)
    assert (waits.job.state, waits.kind) == ("queued", "running")
    assert "waits in Slurm's queue, job 7: BeginTime" in str(waits.detail)
    queued._asked.clear()
    say("RUNNING", nodes="n[1-2]")
    runs = verdict(at)
    assert (runs.job.state, runs.job.code) == ("running", None)
    assert runs.job.queue is not None
    assert runs.job.queue.words == "job 7, RUNNING, n[1-2], limit 01:00:00, restarts 1"


@pytest.mark.parametrize(
    ("end", "said", "state", "told"),
    [
        ({"code": 1}, {"state": "FAILED", "code": "1:0"}, "ended", "exit code 1"),
        ({"code": 1}, {}, "ended", "exit code 1"),  # No accounts, and after MinJobAge.
        ({"code": 1}, {"error": "Unable to contact slurm controller (connect failure)"}, "ended", "exit code 1"),
        ({"code": -15}, {"state": "TIMEOUT", "code": "0:15"}, "ended", "the time limit of 01:00:00 was reached"),
        (None, {"state": "OUT_OF_MEMORY", "code": "0:125"}, "ended", "more memory than it was given"),
        (None, {"state": "NODE_FAIL", "nodes": "n[1-2]"}, "ended", "a node failed (n[1-2])"),
        (None, {"state": "PREEMPTED"}, "ended", "preempted by another job"),
        (None, {"state": "FAILED", "code": "0:9"}, "ended", "SIGKILL"),
        ({"code": -15}, {"state": "CANCELLED", "code": "0:15"}, "stopped", "stopped after"),
        (None, {}, "lost", ""),
        (None, {"error": "Unable to contact slurm controller (connect failure)"}, "queued", "Unable to contact"),
    ],
)
def test_how_a_job_ended(
    tmp_path: Path, say: Say, end: dict[str, Any] | None, said: dict[str, str], state: str, told: str
) -> None:
    say(**said)
    found = verdict(job(tmp_path, end))
    assert found.job.state == state
    assert told in str(found.detail)


def test_an_end_that_needs_no_slurm_and_one_that_it_has_forgotten_since(tmp_path: Path, say: Say) -> None:
    say(error="no controller")
    at = job(tmp_path, {"code": 0, "told": False})
    assert verdict(at).job.state == "ended"
    (at / "end.json").unlink()
    say("TIMEOUT")
    assert "the time limit" in str(verdict(at).detail)
    queued._asked.clear()
    say()
    assert "the time limit" in str(verdict(at).detail)


@pytest.mark.parametrize(
    ("squeue", "state", "number"),
    [("echo 7", "queued", "7"), ("true", "lost", None), ("echo no controller >&2; exit 1", "starting", None)],
)
def test_a_job_whose_number_was_not_noted(
    tmp_path: Path, say: Say, squeue: str, state: str, number: str | None
) -> None:
    """Whoever handed it to sbatch was killed. Where Slurm does not answer, it is not known to be lost."""
    say("PENDING", "Resources")
    at = job(tmp_path)
    (at / "slurm.json").unlink()
    (at / "batch.sh").write_text("#!/bin/bash\n")
    program = tmp_path / "slurm/squeue"
    program.write_text(f"#!/bin/bash\n[[ $* == *--name=uky-{NAME}* ]] && {{ {squeue}; }}\n")
    program.chmod(0o755)
    found = folder.look(str(at))
    assert (found["state"], found.get("slurm")) == (state, number)
    assert (at / "slurm.json").exists() == (number is not None)


def test_a_job_of_slurm_s_on_a_machine_without_slurm_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = job(tmp_path)
    (at / "slurm.json").unlink()
    (at / "batch.sh").write_text("#!/bin/bash\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert folder.look(str(at))["state"] == "lost"


def test_a_job_whose_number_cannot_be_noted_is_cancelled(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("PENDING")
    at = job(tmp_path)
    for name, script in {"sbatch": "echo 7", "scancel": f"echo $* >> {tmp_path}/cancelled"}.items():
        (tmp_path / "slurm" / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / "slurm" / name).chmod(0o755)

    def full(path: str, values: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(queued, "write_whole", full)
    noted = {"argv": ["bash", "job.sh"], "root": "/fork"}
    with pytest.raises(OSError, match="No space left"):
        queued.launch(str(at), {"slurm": []}, {"PATH": f"{tmp_path}/slurm:/usr/bin:/bin"}, noted, "job.sh")
    assert (tmp_path / "cancelled").read_text() == "7\n"


def test_a_number_that_names_another_job(tmp_path: Path, say: Say) -> None:
    at = job(tmp_path)
    at = at.rename(tmp_path / "20261123-005845-9f01c3")
    say("RUNNING")
    assert folder.look(str(at))["state"] == "lost"
    (at / "slurm.json").write_text(json.dumps({"id": "7 --help"}))
    assert "queue" not in folder.look(str(at))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            SHOWN.format(name="x", state="PENDING", reason="Resources", code="0:0", nodes="(null)"),
            {"name": "x", "state": "PENDING", "reason": "Resources", "nodes": "", "restarts": 1, "code": 0},
        ),
        (
            SHOWN.format(name="x", state="FAILED", reason="NonZeroExitCode", code="3:0", nodes="n1"),
            {"state": "FAILED", "reason": "NonZeroExitCode", "nodes": "n1", "code": 3, "limit": "01:00:00"},
        ),
        (SHOWN.format(name="x", state="CANCELLED", reason="None", code="0:15", nodes="n1"), {"code": -15}),
        ("", {"id": "7", "state": "", "code": None}),
    ],
)
def test_what_scontrol_shows(text: str, wanted: dict[str, object]) -> None:
    found = slurm.parse_job("7", text)
    assert {name: found[name] for name in wanted} == wanted


SBATCH = """\
printf '%s\\n' "$@" >"$0.arguments"
for log in "$@"; do case $log in --output=*) log=${{log#--output=}}; break;; esac; done
SLURM_JOB_ID=7 {more} setsid bash -c 'sleep 0.2; exec "$0"' "${{@: -1}}" >>"${{log//%%/%}}" 2>&1 </dev/null &
echo 7\
"""
"""Starts the script at once, as the node would."""


def submit(here: Site, tmp_path: Path, script: str, more: str = "", **options: Any) -> Verdict:
    """Run a job through the stand-in for sbatch."""
    (tmp_path / "slurm/sbatch").write_text(f"#!/bin/bash\n{SBATCH.format(more=more)}\n")
    (tmp_path / "slurm/sbatch").chmod(0o755)
    here.host = dataclasses.replace(here.host, setup=("export LOADED=yes NAME=setup",), env={"NAME": "it's"}, **options)
    return here.follow(here.start(script))


def test_a_job_is_handed_over_with_its_options_and_runs_with_setup(here: Site, tmp_path: Path, say: Say) -> None:
    say(error="no controller")
    wanted = Slurm(partition="h100", account="rl", gres="gpu:h100:8", time="1-0", nodes=2, sbatch=("--qos=high",))
    script = 'echo "$LOADED $NAME $SLURM_JOB_ID $KEY"; exit 4'
    ended = submit(here, tmp_path, script, slurm=wanted, secrets={"KEY": "k3y"})
    assert (ended.kind, ended.job.code) == ("failed", 4)
    at = Path(ended.job.folder)
    assert "yes it's 7 k3y" in (at / "log").read_text()
    assert [path.name for path in at.rglob("*") if path.is_file() and b"k3y" in path.read_bytes()] == ["log"]
    arguments = (tmp_path / "slurm/sbatch.arguments").read_text().splitlines()
    options = ["--partition=h100", "--account=rl", "--gres=gpu:h100:8", "--time=1-0", "--nodes=2", "--qos=high"]
    assert {*options, "--open-mode=append", f"--chdir={here.root}"} <= {*arguments}


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_a_node_without_a_gpu_starts_no_training(here: Site, tmp_path: Path, say: Say) -> None:
    say(error="no controller")
    ended = submit(here, tmp_path, "touch started\npython3 -m verl.trainer.main_ppo\n", slurm=Slurm())
    assert "no GPU is visible where the job would run" in str(ended.detail)
    assert any("gres" in str(line) for line in ended.lines)
    assert not (here.root / "started").exists()


def test_slurm_takes_no_job(here: Site, tmp_path: Path, say: Say) -> None:
    say()
    with pytest.raises(RefusedError) as refused:
        submit(here, tmp_path, "exit 0", more="echo 'invalid partition specified: x' >&2; exit 1;", slurm=Slurm())
    assert refused.value.kind == "slurm"
    assert "invalid partition specified: x" in str(refused.value.cause)
    assert not list(here.root.rglob("job.json"))
