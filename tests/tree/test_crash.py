"""Killed at any instant: every file is whole, and the next command leaves all old or all new."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.errors import TreeError
from patcher.tree import Tree
from patcher.worktree import disk
from tests.lanes import one_in
from tests.tree.faults import count, faults, fork, killed_at, sigkilled_at, wait_for
from tests.tree.toys import FILES, PATCHED, apply, assert_settled, assert_whole, contents, plant, revert


def status(tree: Tree) -> None:
    with tree.reading() as reading:
        assert reading.unfinished is None


def idle(tree: Tree) -> None:
    with tree.transaction("nothing"):
        pass


def start(tmp_path: Path, act: Callable[[Tree], object]) -> Tree:
    """A fresh tree on which `act` has something to do."""
    shutil.rmtree(tmp_path / "fork", ignore_errors=True)
    (tmp_path / "fork").mkdir()
    tree = plant(tmp_path / "fork")
    if act is revert:
        apply(tree)
    return tree


def calls(tmp_path: Path, act: Callable[[Tree], object]) -> int:
    tree = start(tmp_path, act)
    return count(lambda: act(tree))


WAYS = [(act, after, kill) for act in (apply, revert) for after in (status, idle) for kill in (sigkilled_at, killed_at)]


@pytest.mark.parametrize(("act", "next_command", "kill"), one_in(8, WAYS))
def test_a_run_killed_at_any_call_is_ended_by_the_next_command(tmp_path, act, next_command, kill):
    total = calls(tmp_path, act)
    assert total > 40
    ends = set()
    for at in range(total):
        tree = start(tmp_path, act)
        assert kill(at, lambda: act(tree)), f"call {at} of {total} was not reached"  # noqa: B023
        assert_whole(tree)
        next_command(tree)
        assert contents(tree) in (FILES, PATCHED)
        idle(tree)  # One that looks ends a run that has begun, and leaves what one has laid by that had not.
        ends.add(assert_settled(tree))
        revert(tree)
        assert assert_settled(tree) == "old"
    assert ends == {"old", "new"}


@pytest.mark.parametrize(("act", "every"), one_in(3, [(apply, 9), (apply, 5), (revert, 5)]))
def test_a_recovery_killed_at_any_call_is_ended_by_the_next_command(tmp_path, act, every):
    total = calls(tmp_path, act)
    struck = 0
    for at in range(0, total, every):
        for second in range(100):
            tree = start(tmp_path, act)
            assert killed_at(at, lambda: act(tree))  # noqa: B023
            if not killed_at(second, lambda: idle(tree)):  # noqa: B023
                break
            struck += 1
            assert_whole(tree)
            status(tree)
            assert contents(tree) in (FILES, PATCHED)
            idle(tree)
            assert_settled(tree)
    assert struck > total * 3 // every


ERRORS = ["ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EPERM"]


@pytest.mark.parametrize(("act", "error"), one_in(5, [(act, error) for act in (apply, revert) for error in ERRORS]))
def test_a_call_that_fails_leaves_the_tree_as_it_was_or_is_made_up_for(tmp_path, act, error):
    def strike() -> None:
        raise OSError(getattr(errno, error), os.strerror(getattr(errno, error)))

    refused = 0
    for at in range(calls(tmp_path, act)):
        tree = start(tmp_path, act)
        try:
            with faults(at, strike):
                act(tree)
            end = "new" if act is apply else "old"
            assert_whole(tree)
        except TreeError as trouble:
            refused += 1
            assert trouble.cause and trouble.advice  # noqa: PT017, PT018
            end = None if "tidied" in str(trouble) else "old" if act is apply else "new"
        if end is not None:
            idle(tree)
            assert assert_settled(tree) == end, f"call {at}"
    assert refused > 20


def test_an_interrupt_from_the_keyboard_is_taken_back_at_once(tmp_path):
    def strike() -> None:
        raise KeyboardInterrupt

    for at in range(calls(tmp_path, apply)):
        tree = start(tmp_path, apply)
        try:
            with faults(at, strike):
                apply(tree)
        except KeyboardInterrupt:
            assert_whole(tree)
        idle(tree)
        assert_settled(tree)


@pytest.mark.parametrize("runs", one_in(2, [40, 200]))
def test_runs_killed_at_a_random_moment(tmp_path, runs):
    chance = random.Random(7)
    tree = start(tmp_path, apply)
    ready, begun = os.pipe()  # A busy machine may not let the child begin within the sleep below.

    def loop() -> None:
        os.write(begun, b".")
        while True:
            apply(tree)
            revert(tree)

    struck = recovered = 0
    while struck < runs or (not recovered and struck < 10 * runs):
        child = fork(loop)
        os.read(ready, 1)
        time.sleep(
            chance.uniform(0, 0.03 * (1 + struck // runs))
        )  # Longer where no run was hit: a busy machine is slower.
        os.kill(child, signal.SIGKILL)
        assert wait_for(child) == -signal.SIGKILL
        struck += 1
        assert_whole(tree)
        with tree.reading() as reading:
            recovered += reading.recovered is not None
        idle(tree)
        assert_settled(tree)
    os.close(ready)
    os.close(begun)
    assert recovered, "no run was hit between journal and end"


def test_a_recovery_that_cannot_go_on_goes_back(tree):
    wait_for(fork(lambda: _die_at_the_second_replacement(tree)))
    for new in (tree.root / ".uky-patch" / "staged").glob("*.new"):
        new.unlink()
    with tree.reading() as reading:
        assert reading.recovered is not None
        assert reading.recovered.direction == "rolled-back"
    assert assert_settled(tree) == "old"


def test_a_file_that_somebody_saved_after_the_crash_is_kept(tree):
    wait_for(fork(lambda: _die_at_the_second_replacement(tree)))
    theirs = tree.root / "verl/part3/module.py"
    theirs.write_bytes(b"mine = True\n")
    with tree.transaction("apply") as transaction:
        assert transaction.recovered is not None
        assert transaction.recovered.kept == ("verl/part3/module.py",)
        assert transaction.recovered.direction == "finished"
        assert tree.state(transaction.ledger)["verl/part3/module.py"] == "tampered"
    assert theirs.read_bytes() == b"mine = True\n"
    assert tree.read("verl/part0/module.py").content.endswith(b"# Uky[toy]\n")


def _die_at_the_second_replacement(tree: Tree) -> None:
    seen = []

    def replace(source: Path, target: Path) -> None:
        if tree.root / "verl" in target.parents:
            seen.append(target)
            if len(seen) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        source.replace(target)

    disk.replace = replace
    apply(tree)
