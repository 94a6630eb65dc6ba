"""Many processes on one tree: no corruption, no lost ledger, no hang."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from patcher.errors import TreeError
from patcher.tree import Change, Ledger
from patcher.worktree.ledger import dump
from tests.tree.faults import fork, wait_for
from tests.tree.toys import FILES, PATCHED, TARGETS, apply, assert_settled, contents, edit, revert

if TYPE_CHECKING:
    from patcher.tree import Tree

PROCESSES = 16


def race(act: Callable[[random.Random], object], *, processes: int = PROCESSES, within: float = 90.0) -> None:
    """Run `act` in that many processes at once, each with a seed of its own; all must end in time and well."""
    children = [fork(lambda seed=seed: act(random.Random(seed))) for seed in range(processes)]

    def end(signum: int, frame: object) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
        raise AssertionError(f"not all processes ended within {within} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, within)
    try:
        assert [wait_for(child) for child in children] == [0] * processes
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def consistent_status(tree: Tree) -> str:
    """Look at the tree until nobody has disturbed it, and return what it was."""
    while True:
        with tree.reading(wait=60) as reading:
            found, ledger = contents(tree), reading.ledger
            if not reading.disturbed():
                break
    assert found == (PATCHED if ledger else FILES)
    return "new" if ledger else "old"


def test_16_processes_apply_revert_and_status_one_tree(tree):
    def act(chance: random.Random) -> None:
        for _ in range(12):
            match chance.choice(("apply", "revert", "status", "status")):
                case "apply":
                    apply(tree, wait=60)
                case "revert":
                    revert(tree, wait=60)
                case _:
                    consistent_status(tree)

    race(act)
    assert_settled(tree)
    revert(tree)
    assert assert_settled(tree) == "old"


def test_16_processes_add_to_one_ledger_and_none_is_lost(tree):
    """Each process applies and takes back a record of its own on a file of its own, in a ledger shared by all."""
    paths = [f"verl/own{number}.py" for number in range(PROCESSES)]
    for path in paths:
        (tree.root / path).write_bytes(b"x = 1\n")

    def act(chance: random.Random) -> None:
        mine = paths[chance.number]
        with tree.transaction("apply", wait=60) as transaction:
            changes, addition = edit(tree, mine, record=mine)
            files = {**transaction.ledger.files, **addition.files}
            records = {**transaction.ledger.records, **addition.records}
            transaction.commit(changes, Ledger(files, records))

    def numbered(chance: random.Random) -> None:
        chance.number = numbers[chance.random()]
        act(chance)

    numbers = {random.Random(seed).random(): seed for seed in range(PROCESSES)}
    race(numbered)
    ledger = tree.ledger()
    assert set(ledger.files) == set(ledger.records) == set(paths)
    assert set(tree.state(ledger).values()) == {"as-applied"}


def test_killed_processes_among_living_ones_lose_nothing(tree):
    def act(chance: random.Random) -> None:
        if chance.random() < 0.5:
            victim = fork(lambda: [(apply(tree, wait=60), revert(tree, wait=60)) for _ in range(1000)])
            time.sleep(chance.uniform(0.01, 0.3))
            os.kill(victim, signal.SIGKILL)
            wait_for(victim)
        for _ in range(4):
            consistent_status(tree)
            apply(tree, wait=60)
            revert(tree, wait=60)

    race(act, processes=8)
    revert(tree)
    assert assert_settled(tree) == "old"


def test_a_second_writer_is_told_who_holds_the_tree(tree):
    told = []
    with tree.transaction("apply vllm-x"), pytest.raises(TreeError) as caught:  # noqa: SIM117
        with tree.transaction("revert", wait=0.05, on_wait=told.append):
            pass
    assert f"process {os.getpid()} " in str(caught.value)
    assert "apply vllm-x" in str(caught.value)
    assert [owner.pid for owner in told] == [os.getpid()]
    assert assert_settled(tree) == "old"


def test_a_writer_waits_for_a_reader_and_a_reader_for_a_writer(tree):
    apply(tree)
    with tree.reading(), pytest.raises(TreeError, match="in use by another run"):
        revert(tree, wait=0.05)
    with tree.transaction("apply"), pytest.raises(TreeError, match="in use by another run"), tree.reading(wait=0.05):
        pass
    with tree.reading(), tree.reading():
        pass
    assert assert_settled(tree) == "new"


def test_a_waiter_is_not_fooled_by_a_lock_file_that_a_full_revert_has_removed(tree):
    apply(tree)
    go, start = os.pipe()

    def wait_and_apply() -> None:
        os.read(go, 1)
        apply(tree, wait=30)

    waiter = fork(wait_and_apply)
    with tree.transaction("revert") as transaction:
        os.write(start, b"x")
        time.sleep(0.2)
        entries = transaction.ledger.files.items()
        transaction.commit([Change(path, e.patched, tree.original(e)) for path, e in entries], Ledger())
    assert wait_for(waiter) == 0
    os.close(go)
    os.close(start)
    assert assert_settled(tree) == "new"


def test_a_reader_notices_a_run_that_came_and_went_meanwhile(tree):
    with tree.reading() as reading:
        assert not reading.disturbed()
        apply(tree)
        assert reading.disturbed()
    revert(tree)
    with tree.reading() as reading:
        apply(tree)
        revert(tree)
        assert reading.disturbed(), "folder came and went"


def test_reading_makes_nothing(tree):
    with tree.reading() as reading:
        assert dump(reading.ledger) == dump(tree.ledger())
    assert assert_settled(tree) == "old"
    assert len(TARGETS) == 5
