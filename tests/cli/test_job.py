"""`run` and `job` as they are called."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.conftest import LOGS

STEPS = "echo 'Training Progress:   0%| | 0/1 [00:00<?, ?it/s]'; echo 'step:1 - a:1 - b:2'"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "fork"
    (root / "verl").mkdir(parents=True)
    (root / "verl/__init__.py").write_text("")
    (root / "verl/version").mkdir()
    yield root
    call(root, "job", "stop", "here", "--grace", "0")


def call(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patcher", "--root", str(root), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=60,
    )


def test_run_follows_and_ends_with_the_verdict(tree: Path) -> None:
    (tree / "mine.sh").write_text(f'{STEPS}; echo "$@"')
    done = call(tree, "run", "debug", "--script", "mine.sh", "--", "trainer.x='[1, 2]'", "a=$(b)")
    assert (done.returncode, done.stdout) == (0, "ok  1 step in 0 s\n")
    assert "step 1 of 1" in done.stderr
    logs = call(tree, "job", "logs", "here", "--lines", "1")
    assert (logs.returncode, logs.stdout) == (0, "trainer.x='[1, 2]' a=$(b)\n")
    working = json.loads((tree / ".uky-patch/host/working/latest/working.json").read_text())
    assert working["script"] == "mine.sh"
    assert (tree / ".uky-patch/host/working/latest/mine.sh").read_text() == (tree / "mine.sh").read_text()


def test_a_failed_run_ends_with_one_and_says_where(tree: Path) -> None:
    (tree / "train.log").write_bytes((LOGS / "verl-0.6.1-failed.log").read_bytes())
    (tree / "mine.sh").write_text("cat train.log; exit 1")
    done = call(tree, "--format", "json", "run", "debug", "--script", "mine.sh")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["host"], report["job"]["verdict"], report["job"]["code"]) == ("here", "failed", 1)
    assert report["job"]["line"]["text"] == "KeyError: 'raw_prompt'"
    (root,) = [one for one in report["diagnosis"]["symptoms"] if one["role"] == "root"]
    assert root["text"] == "KeyError: 'raw_prompt'"
    attached = call(tree, "job", "attach", "here")
    assert attached.returncode == 1
    assert re.search(r"^  root  +\S.*\n.*\n(?:.*\n)*? +> \d+  KeyError: 'raw_prompt'$", attached.stdout, re.MULTILINE)
    status = call(tree, "job", "status", "here")
    assert status.returncode == 0
    assert "KeyError: 'raw_prompt'" in status.stdout
    assert "http://127.0.0.1:8265" in status.stdout


def test_detached_attached_and_stopped(tree: Path) -> None:
    (tree / "mine.sh").write_text(f"{STEPS}; until [ -e go ]; do sleep 0.1; done; sleep 300")
    done = call(tree, "run", "debug", "--script", "mine.sh", "--detach")
    assert done.returncode == 0
    assert "uky-patch job attach here --id" in done.stdout
    second = call(tree, "run", "debug", "--script", "mine.sh")
    assert second.returncode == 5
    assert "a job of this tree is running" in second.stderr
    status = json.loads(call(tree, "--format", "json", "job", "status", "here").stdout)
    assert (status["job"]["verdict"], status["job"]["step"]) == ("running", 1)
    assert status["usage"]["processes"]
    stopped = call(tree, "job", "stop", "here", "--grace", "1")
    assert stopped.returncode == 0
    assert "processes stopped" in stopped.stdout
    again = call(tree, "job", "stop", "here")
    assert "had ended already (stopped)" in again.stdout
    assert call(tree, "job", "attach", "here").returncode == 1


def test_an_interrupt_leaves_it_and_says_how_to_come_back(tree: Path) -> None:
    (tree / "mine.sh").write_text("echo begun; sleep 300")
    command = [sys.executable, "-m", "patcher", "--root", str(tree), "run", "debug", "--script", "mine.sh"]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stderr is not None
    assert running.stderr.readline().endswith(": mine.sh\n")
    time.sleep(2.5)
    os.killpg(running.pid, signal.SIGINT)
    out, error = running.communicate(timeout=20)
    assert running.returncode == 130, error
    assert out.startswith("the job goes on\n")
    assert "job stop here" in out
    assert "Traceback" not in error
    assert json.loads(call(tree, "--format", "json", "job", "status", "here").stdout)["job"]["state"] == "running"


def test_what_is_not_there_is_said(tree: Path) -> None:
    done = call(tree, "job", "status", "here")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no job has been started there" in done.stderr
    cleaned = call(tree, "clean", "--dry-run")
    assert cleaned.returncode == 2
    assert "only jobs that uky-patch has started are known" in cleaned.stderr
    assert "ray stop" in cleaned.stderr
    (tree / "mine.sh").write_text("true")
    call(tree, "run", "debug", "--script", "mine.sh")
    unknown = call(tree, "job", "logs", "here", "--id", "x")
    assert (unknown.returncode, unknown.stderr.splitlines()[0]) == (2, "error: there is no job 'x'")
    assert call(tree, "run", "debug", "--script", "nosuch.sh").returncode == 2


def test_overrides_come_after_two_dashes(tree: Path) -> None:
    done = call(tree, "run", "standard", "debug")
    assert (done.returncode, done.stdout) == (2, "")
    assert "debug is no part of the command; overrides come after --" in done.stderr
    assert "uky-patch run debug -- a=1" in call(tree, "run", "debug", "a=1").stderr


def test_a_refused_run_leaves_the_tree_as_it_was(tree: Path) -> None:
    (tree / "mine.sh").write_text("sleep 300")
    assert call(tree, "run", "debug", "--script", "mine.sh", "--detach").returncode == 0
    before = {path.name for path in tree.iterdir()}
    done = call(tree, "--assume", "verl==0.8.0", "--assume", "vllm==0.11.0", "run", "debug")
    assert done.returncode == 5
    assert "a job of this tree is running" in done.stderr
    assert {path.name for path in tree.iterdir()} == before


def test_a_stop_of_the_newest_job_names_an_older_one_that_runs(tree: Path) -> None:
    (tree / "long.sh").write_text("sleep 300")
    (tree / "short.sh").write_text("true")
    started = call(tree, "--format", "json", "run", "debug", "--script", "long.sh", "--detach")
    first = json.loads(started.stdout)["job"]["id"]
    call(tree, "run", "debug", "--script", "short.sh", "--share")
    stopped = call(tree, "job", "stop", "here")
    assert stopped.returncode == 1
    assert f"job {first} runs, and was left alone: uky-patch job stop here --id {first}" in stopped.stdout
    assert call(tree, "job", "stop", "here", "--id", first, "--grace", "0").returncode == 0


def test_a_followed_log_of_an_ended_job_tells_its_phase_and_an_interrupt_is_one(tree: Path) -> None:
    (tree / "mine.sh").write_text(f"{STEPS}; for n in $(seq 200); do echo more; done; exit 3")
    call(tree, "run", "debug", "--script", "mine.sh")
    followed = call(tree, "job", "logs", "here", "-f", "--lines", "1")
    assert followed.returncode == 0
    assert "in phase loop" in followed.stderr
    (tree / "long.sh").write_text("echo begun; sleep 300")
    call(tree, "run", "debug", "--script", "long.sh", "--detach")
    command = [sys.executable, "-c", INTERRUPTIBLE, "--root", str(tree), "job", "logs", "here", "-f"]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "begun\n"
        time.sleep(1)
        following.send_signal(signal.SIGINT)
        _, error = following.communicate(timeout=20)
    assert following.returncode == 130, error
    assert "the job goes on" in error


@pytest.mark.slow
def test_as_many_lines_as_are_asked_for_and_a_word_where_they_are_too_long(tree: Path) -> None:
    (tree / "mine.sh").write_text("echo done")
    call(tree, "run", "debug", "--script", "mine.sh")
    (log,) = (tree / ".uky-patch/host/jobs").glob("*/log")
    text = "".join(f"line {number} of a long log {'of a long line ' * 6}\n" for number in range(120_000))
    assert len(text) > 9 << 20
    log.write_text(text)
    last = "".join(text.splitlines(keepends=True)[-110_000:])
    logs = call(tree, "job", "logs", "here", "--lines", "110000")
    assert (logs.returncode, logs.stdout == last, logs.stderr) == (0, True, "")
    log.write_text(f"first\nbar {'x' * (9 << 20)}\nlast\n")
    logs = call(tree, "job", "logs", "here", "--lines", "3")
    assert (len(logs.stdout), logs.stdout[-7:]) == (8 << 20, "x\nlast\n")
    assert logs.stderr == "these are the last 8 MiB alone: the lines are long\n"
    assert call(tree, "job", "logs", "here", "--lines", "1").stdout == "last\n"
    assert call(tree, "job", "logs", "here", "--lines", "0").stdout == ""
    told = json.loads(call(tree, "--format", "json", "job", "logs", "here", "--lines", "2").stdout)
    assert (told["text"][-7:], told["cut"]) == ("x\nlast\n", True)


INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from patcher.__main__ import main
main()
"""


def test_the_rollout_alone_is_what_the_releases_understand(tree: Path) -> None:
    (tree / "mine.sh").write_text('echo "$@"')
    call(tree, "run", "debug", "--script", "mine.sh", "--only-rollout")
    assert call(tree, "job", "logs", "here").stdout == "trainer.val_before_train=True trainer.val_only=True\n"
