"""A symptom is told by where a process stands: by all of its patterns, in whatever way the functions are named."""

from __future__ import annotations

from dataclasses import replace

from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Stack
from patcher.stacks.symptoms import seen
from tests.stacks.standins import ALL_REDUCE, COMPILES, heard, rank

ANY = load_symptoms()[0]


def test_all_patterns_are_needed() -> None:
    found = heard(rank(0, 2, ALL_REDUCE), rank(1, 2, COMPILES)).processes
    both = replace(ANY, stacks=(Stack((r"distributed_c10d\.py:all_reduce", r"fsdp_workers\.py:update_actor$")),))
    (sign,) = seen([both], found, (), {})
    assert (sign.process.pid, sign.frame.line) == (100, 3252)
    other = replace(ANY, stacks=(Stack((r"distributed_c10d\.py:all_reduce", r"cpp_extension")),))
    assert seen([other], found, (), {}) == ()


def test_the_odd_process_shows_it_first() -> None:
    found = heard(*(rank(number, 3, COMPILES) for number in range(3))).processes
    symptom = replace(ANY, stacks=(Stack((r"torch/utils/cpp_extension\.py:",)),))
    assert seen([symptom], found, (102,), {})[0].process.pid == 102


def test_versions_that_cannot_show_it() -> None:
    symptom = replace(ANY, when={"torch": "<2"}, stacks=(Stack((r"all_reduce",)),))
    assert seen([symptom], heard(rank(0, 1, ALL_REDUCE)).processes, (), {"torch": "2.9.0"}) == ()
