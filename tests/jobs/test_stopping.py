"""Stopping takes all of a job and nothing of anybody else's."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from patcher import jobs
from patcher.remote.channel import RefusedError
from tests.jobs.conftest import Site
from tests.jobs.test_running import alive, wait_for


def processes(site: Site) -> list[int]:
    return [process["pid"] for process in jobs.look(site.open())[1].processes]


def test_a_job_is_stopped_and_said_so(there: Site) -> None:
    job = there.start("sleep 60")
    listed: list[object] = []
    stopped = jobs.stop(there.open(), on_list=listed.extend)
    assert (stopped.was, stopped.job.state, stopped.left) == ("running", "stopped", [])
    assert len(listed) == len(stopped.processes) == 2
    assert {process["how"] for process in stopped.processes} == {"TERM"}
    assert there.follow(job).kind == "stopped"


def test_one_that_ignores_the_signal_is_killed_after_its_grace(there: Site) -> None:
    there.start("trap '' TERM; while true; do sleep 0.1; done")
    time.sleep(0.3)
    begun = time.monotonic()
    stopped = jobs.stop(there.open(), grace=1.0)
    assert 1.0 < time.monotonic() - begun < 15
    assert "KILL" in {process["how"] for process in stopped.processes}
    assert stopped.left == []


def test_daemons_that_left_its_session_and_their_environment_go_too(there: Site) -> None:
    there.start(
        "setsid sleep 101 & env -i setsid sleep 102 & "
        "(trap '' TERM HUP; setsid env -i sh -c 'sleep 103; true' &) ; wait"
    )
    wait_for(lambda: len(processes(there)) >= 5)
    pids = processes(there)
    stopped = jobs.stop(there.open(), grace=1.0)
    assert stopped.left == []
    assert not [pid for pid in pids if alive(pid)]


def test_daemons_without_the_runner_go_by_their_mark(there: Site) -> None:
    job = there.start("setsid sleep 101 & (setsid sleep 102 &) ; sleep 60")
    wait_for(lambda: len(processes(there)) >= 4)
    pids = processes(there)
    subprocess.run(["pkill", "-KILL", "-f", f"{job.folder}/runner.py"], check=True)
    assert jobs.stop(there.open(), grace=1.0).left == []
    assert not [pid for pid in pids if alive(pid)]


def test_what_an_ended_job_left_behind_is_stopped_and_the_end_is_kept(there: Site) -> None:
    job = there.start("(setsid sleep 101 &); exit 3")
    assert there.follow(job).kind == "failed"
    left = processes(there)
    assert len(left) == 1
    stopped = jobs.stop(there.open())
    assert (stopped.was, stopped.job.state, stopped.job.code) == ("ended", "ended", 3)
    assert [process["pid"] for process in stopped.processes] == left
    assert not alive(left[0])
    again = jobs.stop(there.open())
    assert (again.was, list(again.processes)) == ("ended", [])


def test_another_job_and_other_processes_of_the_user_stay(there: Site) -> None:
    other = there.start("exec sleep 60")
    stranger = subprocess.Popen(["setpriv", f"--reuid={there.owner[0]}", "--clear-groups", "sleep", "60"])
    try:
        job = there.start("exec sleep 60", share=True)
        jobs.stop(there.open(), job.id[-6:])
        assert not alive(job.pid)
        assert alive(other.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_second_job_is_refused_and_names_the_first(there: Site) -> None:
    job = there.start("exec sleep 60")
    with pytest.raises(RefusedError) as refused:
        there.start("true")
    assert refused.value.kind == "busy"
    assert job.id in str(refused.value.cause)
    assert str(job.pid) in str(refused.value.cause)


SMI = """#!/bin/sh
case "$*" in
*compute-apps*) printf '%s' "$APPS";;
*--query-gpu*) echo "0, GPU-aaa, NVIDIA H200, 143771, $USED, 0, Disabled, 580.1"
  echo "1, GPU-bbb, NVIDIA H200, 143771, 10, 0, Disabled, 580.1";;
esac
"""


@pytest.fixture
def gpus(here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with two GPUs, as nvidia-smi would tell of them."""
    folder = tmp_path / "smi"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(SMI)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("USED", "10")
    monkeypatch.setenv("APPS", "")
    return folder


def refusal(site: Site) -> str:
    site.link.close()
    with pytest.raises(RefusedError) as refused:
        site.start("true")
    assert refused.value.kind == "busy"
    return str(refused.value.cause)


def test_busy_gpus_are_a_refusal_that_names_who(here: Site, gpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        monkeypatch.setenv("APPS", f"GPU-aaa, {stranger.pid}, /opt/python, 20480\n")
        assert refusal(here) == f"GPU 0: process {stranger.pid} (python) of root, 20.0 GiB"
        here.link.close()
        assert here.follow(here.start("true", share=True)).kind == "ok"
        here.host = here.link.host = type(here.host)(
            "here", "here", path=str(here.root), env={"CUDA_VISIBLE_DEVICES": "1"}
        )
        assert here.follow(here.start("true")).kind == "ok"
    finally:
        stranger.kill()
        stranger.wait()


def test_memory_that_nobody_shown_holds_is_somebodys(here: Site, gpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USED", "70000")
    assert "not visible" in refusal(here)


def test_what_an_ended_job_left_on_a_gpu_is_told_by_its_job(
    here: Site, gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = here.start("(setsid sleep 60 &); true")
    here.follow(job)
    (pid,) = processes(here)
    monkeypatch.setenv("APPS", f"GPU-aaa, {pid}, sleep, 100\n")
    assert f"of job {job.id}" in refusal(here)
    monkeypatch.setenv("APPS", "")
    here.link.close()
