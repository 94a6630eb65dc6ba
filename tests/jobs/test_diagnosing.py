"""`diagnose HOST`: the log of a job on a host, fetched and judged there where the host knows better."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from patcher import jobs
from patcher.cli.app import run
from patcher.jobs import follow_log, job_log
from tests.jobs.conftest import Site
from tests.machines import Machine

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    tree = tmp_path / "mine"
    (tree / "verl").mkdir(parents=True)
    (tree / "verl/__init__.py").write_text("")
    return tree


def diagnose(mine: Path, there: Site, *words: str) -> Done:
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "patcher", "--root", str(mine), "diagnose", "loop", "--path", str(there.root)]
    return subprocess.run([*command, *words], capture_output=True, text=True, env=env, timeout=60)


def told(done: Done) -> Any:
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1 if found["symptoms"] else 0, ""), done.stderr
    return found


def over(there: Site, job: jobs.Job) -> None:
    while not jobs.look(there.open(), job.id)[0].over:
        time.sleep(0.1)


def test_a_job_that_failed_and_one_that_runs(there: Site, mine: Path) -> None:
    secret = "hf_" + "Ab1" * 12
    failed = there.start(f"echo dataset len: 3; echo HF_TOKEN={secret}; echo 'ValueError: 3 rows, not 4'; exit 3")
    over(there, failed)
    found = told(diagnose(mine, there, "--format", "json"))
    assert (found["verdict"], found["job"]["host"], found["job"]["code"]) == ("failed", "loop", 3)
    (symptom,) = found["symptoms"]
    assert (symptom["text"], symptom["line"]) == ("ValueError: 3 rows, not 4", 3)
    assert symptom["file"] == f"loop:{failed.log}"
    there.start("echo dataset len: 3; until [ -e enough ]; do sleep 0.1; done")
    done = diagnose(mine, there)
    assert (done.returncode, done.stdout.split()[0]) == (0, "RUNNING")
    assert "has run for" in done.stdout
    there.write("enough", "")
    assert secret not in diagnose(mine, there, "--job", failed.id).stdout


@pytest.mark.hosts
@pytest.mark.parametrize(
    ("script", "verdict", "said"),
    [
        ("", "ok", "ended with exit code 0"),
        ("exit 7", "failed", "ended with exit code 7"),
        ("echo some words; exit 7", "failed", "ended with exit code 7"),
        ("echo some words", "ok", "ended with exit code 0"),
        ("kill -9 $$", "failed", "killed (SIGKILL"),
        ("kill -TERM $$", "failed", "ended by SIGTERM"),
    ],
)
def test_how_it_ended_is_known_where_the_log_says_nothing(
    there: Site, mine: Path, script: str, verdict: str, said: str
) -> None:
    over(there, there.start(script or "true"))
    found = json.loads(diagnose(mine, there, "--format", "json").stdout)
    assert found["verdict"] == verdict
    assert any(said in note for note in found["notes"])
    assert diagnose(mine, there).returncode == (0 if verdict == "ok" else 1)


def test_a_job_that_is_killed_or_stopped_among_its_steps_has_no_step_as_its_root(here: Site) -> None:
    steps = "echo dataset len: 3; for n in 1 2 3; do echo step:$n - actor/loss:0.1; done; "
    done = here.start(f"{steps} kill -9 $$")
    over(here, done)
    found = diagnosed_here(here)
    (symptom,) = found["symptoms"]
    assert (found["verdict"], symptom["id"], symptom["explanation"]) == ("failed", "process-killed", None)
    assert "SIGKILL" in symptom["text"]
    assert symptom["fix"]
    assert any("ends after step 3, without a word on why" in note for note in found["notes"])
    stopped = here.start(f"{steps} sleep 60")
    while "step:3" not in Path(stopped.log).read_text():
        time.sleep(0.1)
    jobs.stop(here.open(), stopped.id, grace=0.2)
    found = diagnosed_here(here)
    assert (found["verdict"], found["symptoms"]) == ("failed", [])
    assert any("was stopped" in note for note in found["notes"])


def test_a_signal_has_one_word_everywhere_and_a_crash_its_fixes(here: Site) -> None:
    over(here, here.start("echo loading; kill -SEGV $$"))
    found = diagnosed_here(here)
    (symptom,) = found["symptoms"]
    assert (found["verdict"], symptom["id"], symptom["text"]) == ("failed", "segmentation-fault", "ended by SIGSEGV")
    assert any("PYTHONFAULTHANDLER" in fix for fix in symptom["fix"])
    assert any("ended by SIGSEGV" in note for note in found["notes"])
    status = follow_log.status_of(here.open(), None)
    assert "ended by SIGSEGV" in str(status.verdict.detail)


def test_a_failure_in_the_middle_of_a_long_log_is_found_and_what_was_left_out_is_told(
    there: Site, mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job_log, "FIRST", 1000)
    monkeypatch.setattr(job_log, "LAST", 1000)
    plain = "for n in $(seq 20000); do echo a plain line that tells of no failure, of the number $n; done"
    over(there, job := there.start(f"{plain}; python3 -c 'import torch_nothere' 2>&1; {plain}; exit 1"))
    size = there.root.joinpath(".uky-patch/host/jobs", job.id, "log").stat().st_size
    command = ["--root", str(mine), "diagnose", "loop", "--path", str(there.root), "--format", "json"]
    assert run(command) == 1
    found = json.loads(capsys.readouterr().out)
    (symptom,) = found["symptoms"]
    assert (symptom["id"], symptom["line"]) == ("module-missing", 20_003)
    assert (found["bytes"], found["lines"]) == (size, 40_003)
    (note,) = [one for one in found["notes"] if "were not looked at" in one]
    assert note.startswith("1 MiB in the middle of the log")
    assert "--whole-log" in note
    assert run([*command, "--whole-log"]) == 1
    whole = json.loads(capsys.readouterr().out)
    assert (whole["symptoms"], whole["bytes"]) == (found["symptoms"], size)
    assert not [one for one in whole["notes"] if "were not looked at" in one]


def diagnosed_here(here: Site) -> Any:
    command = [sys.executable, "-m", "patcher", "--root", str(here.root), "diagnose", "here", "--format", "json"]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=env, timeout=60).stdout)


@pytest.mark.hosts
def test_a_host_without_a_job_and_one_without_sshd(there: Site, reachable: Machine, mine: Path) -> None:
    done = diagnose(mine, there)
    assert done.returncode == 2
    assert "no job has been started there" in done.stderr
    with reachable.no_sshd():
        done = diagnose(mine, there)
    assert done.returncode == 5
    assert "it refuses the connection" in done.stderr
