"""The command: what it says of a run that ends, fails, stalls, or is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patcher.jobs.agent import processes
from tests import tools
from tests.watch.conftest import Stalled

Start = Callable[..., Stalled]
KEYS = {"phase", "verdict", "seconds", "limit", "milestones", "stacks", "symptoms"}


def watch(*arguments: object, within: float = 90) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "patcher", "watch", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=within,
        env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return done.returncode, done.stdout, done.stderr


def begun(run: Stalled, count: int) -> None:
    deadline = time.monotonic() + 60
    while run.log.read_text().count("has begun") < count and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_stall_is_named_by_phase_and_rank(stalled: Start) -> None:
    run = stalled("ranks:stopped_rank:3")
    begun(run, 3)
    begin = time.monotonic()
    code, out, err = watch(run.log, "--limit", 2, "--format", "json")
    assert code == 1, err
    found: dict[str, Any] = json.loads(out)
    assert found.keys() >= KEYS
    assert (found["verdict"], found["phase"], found["limit"], found["reason"]) == ("stalled", "dataset", 2, "given")
    assert [one["phase"] for one in found["milestones"]] == ["config", "dataset"]
    odd = [group for group in found["stacks"]["groups"] if group["odd"]]
    assert [(group["ranks"], group["role"], group["doing"]) for group in odd] == [
        ([2], "rank", "is stopped by a signal")
    ]
    root, *rest = found["symptoms"]
    assert (root["id"], root["role"], root["file"]) == ("process-stopped", "root", f"pid {odd[0]['pids'][0]} rank 2")
    assert {one["role"] for one in rest} <= {"cascade"}
    assert f"kill -CONT {odd[0]['pids'][0]}" in root["fix"][0]
    assert {"count", "ranks", "pids", "frames", "where", "odd"} <= odd[0].keys()
    assert time.monotonic() - begin < 60
    assert run.process.poll() is None


def test_by_its_process_and_in_words(stalled: Start) -> None:
    run = stalled("ranks:held_lock:3", str(Path(os.devnull).parent / "shm" / f"uky-{os.getpid()}"))
    begun(run, 3)
    code, out, _ = watch("--pid", run.process.pid, "--limit", 2)
    assert code == 1
    first, *rest = out.splitlines()
    assert first.startswith("stalled  dataset, ")
    assert any(line.startswith("  odd: rank 1 (pid ") and "holds the file lock" in line for line in rest)
    assert any("2 ranks 0, 2 (pid " in line and "waits for a file lock" in line for line in rest)


def test_once_says_what_it_does_now(stalled: Start) -> None:
    run = stalled("pool")
    begun(run, 1)
    code, out, _ = watch(run.log, "--once")
    assert code == 0
    assert out.startswith("running  config, ")
    assert "driver (pid " in out


def test_what_a_start_has_read_does_not_pass_for_work_of_now(stalled: Start, tmp_path: Path) -> None:
    """A burst, as of an import, and then silence: the limit counts from the silence, give or take a few seconds."""
    (tmp_path / "large").write_bytes(bytes(400 << 20))
    run = stalled("bursts", str(tmp_path / "large"))
    begun(run, 1)
    code, out, _ = watch(run.log, "--limit", 4, "--format", "json")
    found = json.loads(out)
    assert (code, found["verdict"]) == (1, "stalled")
    assert found["silent"] < 4 + 15


@pytest.mark.hosts
def test_a_job_that_works_without_a_word_is_not_called_stalled(stalled: Start) -> None:
    tools.require("py-spy")
    run = stalled("works")
    begun(run, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        watch(run.log, "--limit", 2, within=9)
    assert run.process.poll() is None


def test_a_run_that_ends_well_and_one_that_fails(tmp_path: Path) -> None:
    bar = "echo 'Training Progress:   0%|  | 0/1 [00:00<?, ?it/s]'; echo 'step:1 - x:1'"
    for name, ending, code in (("good", bar, 0), ("bad", "echo 'ValueError: no such thing'; exit 3", 1)):
        log = tmp_path / f"{name}.log"
        script = f"echo 'dataset len: 3'; sleep 1; {ending}"
        with log.open("wb") as out:
            job = subprocess.Popen(["bash", "-c", script], stdout=out, stderr=out)
        found = watch(log)
        job.wait()
        assert (found[0], found[1].split()[0]) == (code, ("ok", "failed")[code]), found
        assert ("loop", "dataset")[code] in found[1]


def test_a_program_that_is_no_training_and_ends_without_a_word(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    with log.open("wb") as stream:
        job = subprocess.Popen(["bash", "-c", "echo some words; sleep 12"], stdout=stream)
    code, out, _ = watch(log)
    job.wait()
    assert (code, out.split()[0]) == (1, "lost")
    assert "nobody noted its exit code; its log ends without a word on why" in out
    os.utime(log, (time.time() - 60,) * 2)
    code, out, err = watch(log)
    assert (code, out) == (2, "")
    assert "nothing of a training run is in" in err


STEPS = "dataset len: 3\\n" + "".join(f"step:{n} - actor/loss:0.1 - critic/score/mean:0.2\\n" for n in range(1, 5))


@pytest.mark.parametrize("renamed", [False, True])
def test_a_run_that_is_killed_among_its_steps(tmp_path: Path, renamed: bool) -> None:
    """No step is its root cause, and it has not ended well, also if logrotate gives its log another name meanwhile."""
    log = tmp_path / "run.log"
    with log.open("wb") as stream:
        job = subprocess.Popen(["bash", "-c", f"printf '{STEPS}'; exec sleep 60"], stdout=stream)
    rename = threading.Timer(4, log.rename, [tmp_path / "run.log.1"])
    kill = threading.Timer(6, job.kill)
    for timer in (rename, kill) if renamed else (kill,):
        timer.start()
    code, out, _ = watch(log, "--format", "json")
    job.wait()
    found = json.loads(out)
    assert (code, found["verdict"], found["symptoms"]) == (1, "lost", [])
    assert found["milestones"][-1]["step"] == 4
    assert "ends after step 4, without a word on why" in found["detail"]


def test_a_process_without_a_log_whose_exit_code_nobody_sees(tmp_path: Path) -> None:
    job = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(6); raise SystemExit(1)"], cwd=tmp_path)
    code, out, _ = watch("--pid", job.pid)
    job.wait()
    assert (code, out.split()[0]) == (1, "lost")


def test_a_log_whose_job_is_long_over(tmp_path: Path) -> None:
    log = tmp_path / "old.log"
    log.write_text(
        "dataset len: 3\nTraceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nKeyError: 'x'\n"
    )
    os.utime(log, (time.time() - 9000,) * 2)
    code, out, _ = watch(log)
    assert code == 1
    assert "KeyError" in out


def test_an_interrupt_leaves_the_job_alone(stalled: Start) -> None:
    run = stalled("ranks:empty_queue:2")
    begun(run, 2)
    command = [sys.executable, "-c", INTERRUPTIBLE, "watch", str(run.log)]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as watcher:
        assert watcher.stderr is not None
        while "config" not in watcher.stderr.readline():
            pass
        before = processes.descendants([run.process.pid], processes.table())
        watcher.send_signal(signal.SIGINT)
        out, _ = watcher.communicate(timeout=30)
    assert (watcher.returncode, out) == (130, "the job goes on\n")
    assert processes.descendants([run.process.pid], processes.table()) == before


INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from patcher.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name a log"),
        (("x.log", "--pid", "1"), "name a log"),
        (("--pid", "4194303"), "no process"),
        (("/tmp/",), "folder"),
    ],
)
def test_what_cannot_be_watched(arguments: tuple[str, ...], told: str) -> None:
    code, _, err = watch(*arguments)
    assert code == 2
    assert told in err
