"""Work that a forked process does meanwhile: its answer, its failure, and what becomes of one that nobody asks."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

SCRIPT = """
import os, sys, time
os.cpu_count = lambda: {cores}
from patcher.analysis.conditions.prefetch import prefetch
def work():
    print("not to be seen")
    {work}
with prefetch(work) as promise:
    print(promise if promise is None else {then})
print("over")
"""


def told(work: str, then: str = "promise.get()", cores: int = 2) -> list[str]:
    script = SCRIPT.format(work=work, then=then, cores=cores)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_answer_comes_and_nothing_else_of_it_is_seen() -> None:
    assert told("return {'a' * 100_000}", "len(promise.get().pop())") == ["100000", "over"]


def test_a_process_that_fails_promises_nothing() -> None:
    assert told("raise ValueError('lost')") == ["None", "over"]


def test_one_that_nobody_asks_is_ended() -> None:
    started = time.monotonic()
    assert told("time.sleep(50)", "'busy'") == ["busy", "over"]
    assert time.monotonic() - started < 40


def test_one_core_alone_does_its_own_work() -> None:
    assert told("return 1", cores=1) == ["None", "over"]
