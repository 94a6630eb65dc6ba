"""Logs of trainers other than verl's: they are of a run, and their steps are progress."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnosed import TRACEBACK, diagnosed

BARS = "".join(f" {step}%|████      | {step}/100 [00:{step}<00:50,  1.00it/s]\n" for step in range(40, 43))
STEPS = "".join(
    f"(entry pid=7) 2026-01-02 10:00:{at}0.1 | INFO     | trainer:train:45 - {what}\n"
    for at, what in enumerate(("Started: 'step'", "Finished: 'step', time cost: 9.10s", "Started: 'step'"))
)
FAILED = f"{TRACEBACK}ValueError: the bed is empty, so that nothing grows\n"


@pytest.mark.parametrize(
    ("log", "phase"),
    [
        (STEPS, "loop"),
        (f"***** Running training *****\n{BARS}", "loop"),
        ("wandb: Tracking run with wandb version 0.19.9\n", "config"),
        ("(Controller pid=7) Started training worker group of size 4: \n", "config"),
        ("2026-01-02 10:00:00,123 - __main__ - INFO - Before starting training, hello\nStarting training\n", "loop"),
    ],
)
def test_a_log_of_another_trainer_is_of_a_run(log: str, phase: str) -> None:
    found = diagnosed(log)
    assert (found.blank, found.verdict, found.phase) == (False, "running", phase)


@pytest.mark.parametrize(
    ("before", "behind", "verdict"),
    [
        ("***** Running training *****\n", BARS, "running"),
        (STEPS, STEPS, "running"),
        ("***** Running training *****\n", "", "failed"),
        ("", BARS, "failed"),
    ],
)
def test_what_such_a_run_makes_steps_after_it_got_over(before: str, behind: str, verdict: str) -> None:
    assert diagnosed(f"{before}{FAILED}{behind}").verdict == verdict


def test_a_bar_without_a_name_tells_of_no_run() -> None:
    assert diagnosed(BARS).blank
