"""Programs that stand still, and the way to look at them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

from patcher.jobs.agent import processes
from patcher.watch.agent.members import Members
from patcher.watch.agent.stacks import take_stacks
from patcher.watch.stacks.grouping import ProcessGroups, group_processes
from patcher.watch.stacks.read_stacks import read_stacks
from tests import tools

PROGRAM = Path(__file__).with_name("stalls.py")
WITH = ("py-spy", "hook", "proc")
"""Ways in which stacks are come by."""


@dataclass
class Stalled:
    """A program of `stalls.py` that runs, its output in `log`."""

    process: subprocess.Popen[bytes]
    log: Path
    stacks: Path
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def order(self) -> dict[str, object]:
        found = processes.one(self.process.pid)
        assert found is not None
        folders = [str(Path(sys.executable).parent)]
        return {"pids": [[found.pid, found.start]], "stacks": str(self.stacks), "folders": folders}

    def look(self, how: str) -> ProcessGroups:
        """Its processes now, their stacks come by in one way alone."""
        bare = {"py-spy": ("hook",), "hook": ("py-spy",), "proc": ("py-spy", "hook")}[how]
        order = self.order
        found = read_stacks(take_stacks(Members(order), order, False, bare), "here")
        return group_processes(found.processes, found.locks)

    def each_way(self, check: Callable[[ProcessGroups, str], None], within: float = 60) -> None:
        """The check with every way in which stacks are come by here."""
        for how in ways():
            self.soon(how, check, within)

    def soon(self, how: str, check: Callable[[ProcessGroups, str], None], within: float = 60) -> None:
        """Look again until the check holds: a program needs its time to come to stand."""
        deadline = time.monotonic() + within
        while True:
            try:
                return check(self.look(how), how)
            except (AssertionError, LookupError, StopIteration):
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)


@pytest.fixture
def stalled(tmp_path: Path) -> Iterator[Callable[..., Stalled]]:
    """Start a program of `stalls.py`; with the hook, as a job has it."""
    running: list[Stalled] = []

    def start(*arguments: str, python: str = sys.executable, env: Mapping[str, str] | None = None) -> Stalled:
        hook, stacks = tmp_path / "hook", tmp_path / "stacks"
        for folder in (hook, stacks):
            folder.mkdir(exist_ok=True)
        source = import_module("patcher.jobs.agent.sitecustomize_hook").__file__
        shutil.copyfile(str(source), hook / "sitecustomize.py")
        log = tmp_path / "log.txt"
        given = {"UKY_PATCH_STACKS": str(stacks), "PYTHONPATH": str(hook), **(env or {})}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [python, str(PROGRAM), *arguments],
                stdout=out,
                stderr=out,
                env={**os.environ, **given},
                start_new_session=True,
                cwd=tmp_path,
            )
        running.append(Stalled(process, log, stacks))
        return running[-1]

    yield start
    for one in running:
        end(one.process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with all that it has started."""
    for pid in sorted(processes.descendants([process.pid], processes.table()), reverse=True):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ways() -> tuple[str, ...]:
    """The ways that there are here: py-spy comes with the development group."""
    return WITH[1:] if tools.missing("py-spy") else WITH
