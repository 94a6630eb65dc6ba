"""Real processes that stand still: the rank that holds the others up is named, by py-spy, the hook, or /proc alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.watch.agent.members import Members
from patcher.watch.agent.stacks import take_stacks
from patcher.watch.stacks.grouping import Group, ProcessGroups
from patcher.watch.stacks.read_stacks import read_stacks
from tests import tools
from tests.watch.conftest import Stalled

Start = Callable[..., Stalled]


def odd_ranks(found: ProcessGroups) -> list[tuple[int, ...]]:
    return [group.ranks for group in found.odd]


def of_ranks(found: ProcessGroups, *ranks: int) -> Group:
    return next(group for group in found.groups if group.ranks == ranks and group.role == "rank")


def test_a_rank_holds_a_lock_for_ever(stalled: Start, tmp_path: Path) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        assert odd_ranks(found) == [(1,)]
        assert str(found.odd[0].odd) == "holds the file lock that others wait for"
        others = of_ranks(found, 0, 2)
        assert str(others.action) == "waits for a file lock"
        if how != "proc":
            assert found.odd[0].where.endswith("stalls.py:consume_batch")
            assert others.where.endswith("stalls.py:held_lock")

    stalled("ranks:held_lock:3", str(tmp_path / "x")).each_way(check)


def test_a_rank_is_stopped(stalled: Start) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        assert odd_ranks(found) == [(2,)]
        assert str(found.odd[0].action) == "is stopped by a signal"
        assert of_ranks(found, 0, 1)
        state = Path(f"/proc/{found.odd[0].pids[0]}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T"

    stalled("ranks:stopped_rank:3").each_way(check)


def test_a_queue_stays_empty(stalled: Start) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        if how == "proc":
            assert str(of_ranks(found, 0, 1, 2).action) == "waits for a lock or another thread"
            return
        assert odd_ranks(found) == [(0,)]
        assert str(of_ranks(found, 1, 2).action) == "waits at an empty queue"
        assert str(found.odd[0].action) == "waits for another thread"

    stalled("ranks:empty_queue:3").each_way(check)


def test_a_worker_of_a_pool_never_answers(stalled: Start) -> None:
    def check(found: ProcessGroups, how: str) -> None:
        assert "sleeps" in [str(group.action) for group in found.groups if group.role == "worker"]
        if how != "proc":
            (driver,) = (group for group in found.groups if group.role == "driver")
            assert [frame.function.rpartition(".")[2] for frame in driver.frames][:2] == ["apply", "pool"]

    stalled("pool").each_way(check)


def test_frames_of_compiled_code_if_asked(stalled: Start) -> None:
    tools.require("py-spy")
    run = stalled("empty_queue")

    def check(found: ProcessGroups, how: str) -> None:
        assert found.groups[0].where.endswith("stalls.py:empty_queue")

    run.soon("py-spy", check)
    order = run.order
    (process,) = read_stacks(take_stacks(Members(order), order, True), "here").processes
    assert process.main is not None
    assert any(".so" in frame.path or "lock" in frame.function for frame in process.main.frames)
    assert run.process.poll() is None


def test_what_may_not_be_traced_is_asked_by_its_hook(stalled: Start, tmp_path: Path) -> None:
    """A root that may do less than the job: ptrace and most of /proc are closed to it."""
    if os.geteuid() != 0:
        pytest.skip("only root can give up what root may do")
    run = stalled("ranks:held_lock:3", str(tmp_path / "x"))

    def check(found: ProcessGroups, how: str) -> None:
        assert str(found.odd[0].odd) == "holds the file lock that others wait for"
        assert of_ranks(found, 0, 2)

    run.soon("hook", check)
    found = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", LOOK, repr(run.order)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert found.stderr == ""
    assert "(1,) stalls.py:consume_batch faulthandler capabilities" in found.stdout
    assert "(0, 2) stalls.py:held_lock faulthandler capabilities" in found.stdout


LOOK = """
import sys
from patcher.watch.agent.members import Members
from patcher.watch.agent.stacks import take_stacks
from patcher.watch.stacks.grouping import group_processes
from patcher.watch.stacks.read_stacks import read_stacks
order = eval(sys.argv[1])
found = read_stacks(take_stacks(Members(order), order), "here")
for group in group_processes(found.processes, found.locks).groups:
    print(group.ranks, group.where.rpartition("/")[2], group.processes[0].how, group.processes[0].closed)
"""
