"""What `watch` takes of a processor, and of the job that it watches."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TextIO

from bench.clock import Times
from bench.measures import Amount, Figure

WATCHED = 12.0
"""Seconds for which the processor is measured, once a command has started."""
WARM = 5.0
TURNS, TURN = 10, 1.5
"""How often the watcher is held and let go, and for how many seconds."""
_GREP = r"\[ACTOR\]|\[ROLLOUT\]|\[SYNC\]|ERROR|NCCL|Traceback"
_JOB = """
import os, subprocess, sys, time
for rank in range(1, 8):
    if os.fork() == 0:
        time.sleep(3600)
number = 0
print("dataset len: 8\\nTraining Progress:   0%|  | 0/9000 [00:00<?, ?it/s]", flush=True)
while True:
    number += 1
    print(f"(WorkerDict pid={number}) INFO 01-11 10:00:00 [core.py:{number}] something goes on", flush=True)
    if number % 20 == 0:
        print(f"step:{number // 20} - actor/loss:0.1 - timing_s/step:1.0", flush=True)
    time.sleep(0.05)
"""
_WORK = """
import os, sys, time
def work():
    total = 0
    for number in range(100_000):
        total += number * number % 7
    return total
print("dataset len: 8", flush=True)
while True:
    begun = time.perf_counter()
    work()
    print(f"chunk {time.perf_counter() - begun:.6f}", flush=True)
"""


def watching(folder: Path) -> Iterator[Figure | Amount]:
    """A log of twenty lines a second from eight processes; and a job that computes all the time."""
    log = folder / "watched.log"
    with _job(_JOB, log) as job:
        ours = _share([[sys.executable, "-m", "patcher", "watch", str(log), "--profile", "standard"]])
        theirs = _share([["sh", "-c", f"tail -F '{log}' | grep --line-buffered -E '{_GREP}'"]])
        assert job.poll() is None
    yield Amount("watch: percent of a core, 8 processes, 20 lines a second", ours * 100, "%", 2)
    yield Amount(f"the same in terms of tail -F | grep ({theirs * 100:.2f} %)", ours / max(theirs, 1e-4), "x", 60)
    yield _slower(folder / "work.log")


def _slower(log: Path) -> Figure:
    """The same piece of work again and again, in turn with somebody who watches and with the watcher held."""
    with_it: list[float] = []
    without: list[float] = []
    with (
        _job(_WORK, log),
        _command([sys.executable, "-m", "patcher", "watch", str(log)]) as watcher,
        log.open() as stream,
    ):
        time.sleep(WARM)
        for _ in range(TURNS):
            for told, number in ((without, signal.SIGSTOP), (with_it, signal.SIGCONT)):
                watcher.send_signal(number)
                told.append(median(_pieces(stream)))
    return Figure("a job's own speed, watched / not watched", Times(tuple(with_it)), Times(tuple(without)), 1.01, 1.05)


def _pieces(stream: TextIO) -> list[float]:
    """The seconds that the next pieces of work take."""
    stream.seek(0, os.SEEK_END)
    found: list[float] = []
    while len(found) < 5:
        time.sleep(TURN)
        found += [float(line.split()[1]) for line in stream if line.startswith("chunk ") and line.endswith("\n")]
    return found[1:]


def _share(commands: Sequence[Sequence[str]]) -> float:
    """How much of a core commands take, once they have started, with all that they start."""
    with _command(*commands) as running:
        time.sleep(WARM)
        before, begun = _used(running.pid), time.monotonic()
        time.sleep(WATCHED)
        return (_used(running.pid) - before) / (time.monotonic() - begun)


def _used(pid: int) -> float:
    """Seconds of processor of a process and of its children, those that have ended included."""
    total = 0.0
    for one in (pid, *_children(pid)):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def _job(code: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, _command([sys.executable, "-c", code], out=out.fileno()) as running:
        yield running


@contextmanager
def _command(*commands: Sequence[str], out: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    (command,) = commands
    running = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield running
    finally:
        os.killpg(running.pid, 9)
        running.wait()
