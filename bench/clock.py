"""Wall-clock times of two commands, taken in turn so that a slow moment of the machine meets both."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Trial:
    """A command to be timed. `prepare` runs before each run and is not timed."""

    command: Sequence[str]
    prepare: Callable[[], None] = lambda: None
    exits: frozenset[int] = frozenset({0})
    """Exit codes that are in order."""
    env: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each run."""

    runs: tuple[float, ...] = field(default=())

    @property
    def median(self) -> float:
        return median(self.runs)


def once(trial: Trial) -> float:
    """Seconds that one run takes. Raises SystemExit with the command's output where it fails."""
    trial.prepare()
    started = time.perf_counter()
    done = subprocess.run(trial.command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=trial.env)
    seconds = time.perf_counter() - started
    if done.returncode not in trial.exits:
        output = (done.stdout + done.stderr).decode(errors="replace")[-3000:]
        raise SystemExit(f"{' '.join(trial.command)}: exit code {done.returncode}\n{output}")
    return seconds


def peak(trial: Trial) -> float:
    """The most memory in MB that one run has at a time. Raises SystemExit where it fails."""
    trial.prepare()
    process = subprocess.Popen(
        trial.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=trial.env
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in trial.exits:
        raise SystemExit(f"{' '.join(trial.command)}: exit code {process.returncode}")
    return used.ru_maxrss / 1024


def in_turn(trials: Sequence[Trial], rounds: int) -> tuple[Times, ...]:
    """Run each once to warm up, then `rounds` times in turn, every other round backwards."""
    for trial in trials:
        once(trial)
    seconds: list[list[float]] = [[] for _ in trials]
    for number in range(rounds):
        order = range(len(trials)) if number % 2 == 0 else range(len(trials) - 1, -1, -1)
        for index in order:
            seconds[index].append(once(trials[index]))
    return tuple(Times(tuple(runs)) for runs in seconds)
