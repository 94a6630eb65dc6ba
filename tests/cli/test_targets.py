"""LOG|HOST: what is neither, not there, or something else ends at once, in one error with a next step."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import Answer
from tests.cli.test_job import call, tree
from tests.diagnose.diagnosed import SYMPTOMS, TRACEBACK, healthy, unfinished

__all__ = ["tree"]

Ask = Callable[..., Answer]
FAILED = unfinished() + TRACEBACK + "ValueError: 3 rows, not 4\n"
REFUSED = ("-oProxyCommand=touch ran", "-x", "", " ", "a b", "user@", "@host", "host:", "host:0", "a;b", "a\nb", "ü@")
"""What is no host, whatever command it is given to."""
TAKE_A_HOST = (
    *(["job", verb] for verb in ("status", "logs", "attach", "stop")),
    *(["clean"], ["migrate"], ["watch"], ["diagnose"], ["bundle"]),
    *(["run", "debug", "--host"], ["verify", "--host"], ["render", "git_ignore.py", "--host"]),
    *(["data", "report", "--host"], ["model", "newest", "--host"], ["job", "status", "h", "--ssh"]),
)
LOG_OR_HOST = ("watch", "diagnose", "bundle")


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.records.symptom_parse.load_symptoms", lambda _: SYMPTOMS)


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources, which is the current one."""
    root = tmp_path / "fork"
    (root / "verl").mkdir(parents=True)
    (root / "verl/__init__.py").write_text("def f():\n    raise ValueError('engine is gone')\n")
    (root / "requirements.txt").write_text("vllm==0.8.5\nray\n")
    (root / "README.md").write_text("Set actor_rollout_ref.rollout.name=vllm\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def ssh(fork: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh that knows nobody; a file that it makes when it is called."""
    called = fork.parent / "called"
    program = fork.parent / "bin/ssh"
    program.parent.mkdir()
    told = "ssh: Could not resolve hostname: Name or service not known"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(called))}\necho '{told}' >&2\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return called


@pytest.fixture
def ask(fork: Path, ssh: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: str) -> Answer:
        code = run(words)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return ask


@pytest.mark.parametrize("command", TAKE_A_HOST, ids=" ".join)
def test_what_is_no_host_is_refused_before_ssh_is_called(ask: Ask, ssh: Path, fork: Path, command: list[str]) -> None:
    for text in REFUSED:
        words = [*command, text] if command[-1].startswith("--") else [*command, "--", text]
        answer = ask(*words)
        assert answer.code == 2, (words, answer)
        assert answer.err.startswith("error: "), (words, answer)
        assert not ssh.exists(), words
    assert sorted(path.name for path in fork.iterdir()) == ["README.md", "requirements.txt", "verl"]


def test_a_target_of_probing_is_an_address(ask: Ask) -> None:
    for text in ("-x", "host", "host:", ""):
        answer = ask("probe", "pid", "--target", text)
        assert (answer.code, answer.out) == (2, ""), answer


@pytest.mark.parametrize("command", LOG_OR_HOST)
def test_a_log_that_is_not_there_is_an_error_that_names_those_that_are(ask: Ask, fork: Path, command: str) -> None:
    (fork / "train.log").write_text(FAILED)
    (fork / "notes.txt").write_text("buy milk\n")
    answer = ask(command, "trian.log")
    first, near = answer.err.splitlines()[:2]
    assert (answer.code, first) == (2, "error: there is no log at trian.log")
    assert near == f"  Logs of runs near it: train.log. For the first: uky-patch {command} train.log"
    assert ("--wait 600" in answer.err) is (command == "watch")


@pytest.mark.parametrize("command", LOG_OR_HOST)
def test_a_name_that_is_neither_is_one_error_with_both_readings(
    ask: Ask, ssh: Path, fork: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fork / "train.log").write_text(FAILED)
    answer = ask(command, "train")
    assert (answer.code, answer.err.splitlines()[0]) == (
        5,
        "error: train: there is neither a log nor a host of this name",
    )
    assert f"uky-patch {command} train.log" in answer.err
    ssh.unlink()
    monkeypatch.chdir(tmp_path)
    answer = ask(command, "train")
    assert (answer.code, answer.err.splitlines()[0]) == (2, "error: there is no log at train")
    assert "no" in answer.err.splitlines()[1]
    assert not ssh.exists()


def test_a_host_that_is_named_as_one_is_not_called_a_log(ask: Ask, fork: Path) -> None:
    (fork / "uky-patch.toml").write_text('[hosts.gpu]\nssh = "gpu.invalid"\n')
    (fork / "gpu").mkdir()
    for words in (["diagnose", "gpu"], ["watch", "gpu"], ["watch", "verl", "--ssh", "verl"]):
        answer = ask(*words)
        assert answer.code == 5
        assert "there is no host of this name" in answer.err


def test_diagnose_of_sources_says_that_they_are_no_log(ask: Ask, fork: Path) -> None:
    answer = ask("diagnose", ".")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines()[:2] == [
        "error: . is a folder of sources, and no log",
        "  no file below it tells of a training run",
    ]
    (fork / "outputs/a").mkdir(parents=True)
    (fork / "outputs/a/train.log").write_text(FAILED)
    answer = ask("--format", "json", "diagnose", ".")
    assert answer.json["error"]["code"] == 2
    command = "uky-patch diagnose outputs/a/train.log"
    assert answer.json["error"]["advice"].endswith(f"For the first: {command}")
    assert ask(*shlex.split(command)[1:]).code == 1


@pytest.mark.parametrize("name", ["requirements.txt", "README.md", "verl/__init__.py", "words.log", "empty.log", "-"])
def test_what_tells_nothing_of_a_run_is_not_said_to_run(
    ask: Ask, fork: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fork / "words.log").write_text("some words\n")
    (fork / "empty.log").touch()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"some words\n")))
    answer = ask("diagnose", name)
    assert (answer.code, answer.out) == (2, "")
    assert "nothing of a training run is in" in answer.err or "is empty" in answer.err
    assert "Name the log that the run writes" in answer.err


def test_a_log_of_words_that_is_being_written_runs(ask: Ask, fork: Path) -> None:
    with (fork / "words.log").open("w") as stream:
        stream.write("downloading\n")
        stream.flush()
        answer = ask("diagnose", "words.log")
    assert (answer.code, answer.out.split()[0]) == (0, "RUNNING")
    assert "no phase of a training is seen" in answer.out


def test_a_bundle_of_a_log_that_tells_nothing_is_made_all_the_same(ask: Ask, fork: Path) -> None:
    (fork / "words.log").write_text("some words\n")
    assert ask("bundle", "--dry-run", "./words.log").code == 1


def test_of_a_folder_the_newest_run_counts(ask: Ask, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "one.log").write_text("dataset len: 3\nValueError: 3 rows, not 4\n")
    (folder / "two.out").write_text("Training Progress: 100%|####| 1/1 [00:09<00:00, 9.1s/it]\nstep:1 - loss:1.0\n")
    (folder / "two.err").write_text("some words\n")
    (folder / "core.log").write_bytes(bytes(range(256)) * 40)
    (folder / "notes.txt").write_text("some words\n")
    for name, age in (("one.log", 90_000), ("two.out", 40_000), ("two.err", 40_500), ("notes.txt", 0), ("core.log", 9)):
        os.utime(folder / name, (time.time() - age,) * 2)
    answer = ask("diagnose", str(folder))
    assert answer.code == 0, answer
    assert answer.out.startswith("OK")
    said = " ".join(answer.out.split())
    assert f"2 of the newest run: {folder}/two.err, {folder}/two.out." in said
    assert f"Left aside: 1 of earlier runs, such as {folder}/one.log" in said
    told = ask("--format", "json", "diagnose", str(folder)).json
    assert told["logs"] == [f"{folder}/two.err", f"{folder}/two.out"]
    assert told["earlier"] == [f"{folder}/one.log"]
    os.utime(folder / "one.log")
    assert ask("diagnose", str(folder)).code == 1


def test_of_copied_logs_the_times_in_their_lines_count(ask: Ask, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, day, text in (("a", 3, "ValueError: 3 rows, not 4"), ("b", 2, "step:1 - x:1"), ("c", 1, "step:1 - x:1")):
        (folder / f"{name}.log").write_text(f"2026-03-0{day} 12:00:00 INFO dataset len: 3\n{text}\n")
    told = ask("--format", "json", "diagnose", str(folder)).json
    assert (told["verdict"], told["logs"]) == ("failed", [f"{folder}/a.log"])
    assert told["earlier"] == [f"{folder}/b.log", f"{folder}/c.log"]


def test_logs_that_were_written_at_the_same_time_are_of_one_run(ask: Ask, tmp_path: Path) -> None:
    """Ranks, and workers that said their last word hours before the others."""
    folder = tmp_path / "logs"
    for name, text, age in (
        ("attempt_0/0/stderr.log", healthy(), 100),
        ("attempt_0/1/stderr.log", TRACEBACK + "ValueError: 3 rows, not 4\n", 30_000),
        ("rank0.log", "some words\n", 200),
        ("rank1.log", "some words\n", 9_000),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (time.time() - age,) * 2)
    assert len(ask("--format", "json", "diagnose", str(folder)).json["logs"]) == 4


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("logs", "is a folder; watch one log of it"),
        ("verl", "is a folder; watch one log of it"),
        ("empty.log", "is empty"),
        ("words.log", "nothing of a training run is in"),
        ("core.log", "is no log"),
        ("old.log.gz", "is packed"),
        ("fifo", "is no file that grows"),
        ("-", "standard input is not watched"),
        ("nosuch/train.log", "there is no folder nosuch"),
    ],
)
def test_what_cannot_be_watched_ends_at_once(ask: Ask, fork: Path, name: str, told: str) -> None:
    (fork / "logs").mkdir()
    (fork / "logs/train.log").write_text(FAILED)
    (fork / "empty.log").touch()
    (fork / "words.log").write_text("some words\n")
    (fork / "core.log").write_bytes(bytes(range(256)) * 40)
    (fork / "old.log.gz").write_bytes(gzip.compress(FAILED.encode()))
    for one in ("empty.log", "words.log"):
        os.utime(fork / one, (time.time() - 60,) * 2)
    os.mkfifo(fork / "fifo")
    begun = time.monotonic()
    answer = ask("watch", "--", name)
    assert (answer.code, answer.out) == (2, ""), answer
    assert told in answer.err
    assert time.monotonic() - begun < 10
    assert ("uky-patch watch logs/train.log" in answer.err) is (name == "logs")


def test_a_log_that_is_yet_to_come_is_waited_for_with_a_limit(ask: Ask, fork: Path) -> None:
    answer = ask("watch", "train.log", "--wait", "0.3")
    assert answer.code == 2
    assert answer.err.splitlines()[0] == "waiting for train.log, 0.3 s at most"
    assert "none has come for 0.3 s" in answer.err
    timer = threading.Timer(0.5, lambda: (fork / "train.log").write_text(FAILED))
    timer.start()
    answer = ask("watch", "train.log", "--wait", "30", "--once")
    timer.join()
    assert answer.err.startswith("waiting for train.log, 30 s at most\n")
    assert answer.out
    assert ask("watch", "here", "--wait", "3").code == 2


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield process.pid
        process.kill()


def test_a_process_that_is_no_training_is_not_watched(ask: Ask, sleeper: int) -> None:
    answer = ask("watch", "--pid", str(sleeper))
    assert answer.code == 2
    assert answer.err.startswith(f"error: process {sleeper} (sleep) is no training\n")


def test_diagnose_of_a_host_reads_the_log_of_its_job(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Here; over ssh it is in the lane of hosts."""

    def ask(*words: str) -> Answer:
        code = run(words)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    assert "To start a job: uky-patch run debug" in ask("--root", str(tree), "diagnose", "here").err
    (tree / "mine.sh").write_text("echo dataset len: 3; echo 'ValueError: 3 rows, not 4'; exit 3")
    assert call(tree, "run", "debug", "--script", "mine.sh").returncode == 1
    told = ask("--root", str(tree), "--format", "json", "diagnose", "here")
    assert told.code == 1
    found = json.loads(told.out)
    assert (found["verdict"], found["job"]["host"], found["job"]["code"]) == ("failed", "here", 3)
    assert found["symptoms"][0]["text"] == "ValueError: 3 rows, not 4"
    assert found["symptoms"][0]["file"].endswith("/log")
    (tree / "mine.sh").write_text("echo dataset len: 3")
    assert call(tree, "run", "debug", "--script", "mine.sh").returncode == 0
    answer = ask("--root", str(tree), "diagnose", "here")
    assert (answer.code, answer.out.split()[0]) == (0, "OK")
    assert "ended with exit code 0" in answer.out
    earlier = ask("--root", str(tree), "diagnose", "here", "--job", found["job"]["id"])
    assert earlier.code == 1
    assert ask("--root", str(tree), "diagnose", "here", "--job", "nosuch").code == 2
    assert ask("diagnose", "./x.log", "--job", "x").code == 2


def test_the_real_process_refuses_an_option_as_a_host(fork: Path, ssh: Path) -> None:
    command = [sys.executable, "-m", "patcher", "watch", "--", f"-oProxyCommand=touch {fork}/ran.log"]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "would be taken for an option" in done.stderr
    assert not ssh.exists()
    assert not (fork / "ran.log").exists()
