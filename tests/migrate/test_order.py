"""Which steps run for `--from` and `--only`."""

from __future__ import annotations

import pytest

from patcher.migrate.order import STEPS, MigrationOrder, StepName
from patcher.remote.host import Host

HOST = Host("h", "h")


def steps(
    start: StepName | None = None, *, until: StepName | None = None, only: tuple[StepName, ...] = ()
) -> list[str]:
    order = MigrationOrder(HOST, start, until, only)
    return [step for step in STEPS if order.runs(step)]


def test_all_of_them_without_a_choice() -> None:
    assert steps() == list(STEPS)


def test_from_a_step_looks_again_and_leaves_out_what_was_written_before_it() -> None:
    assert steps("render") == ["preflight", "probe", "plan", "render", "verify", "environment", "job"]


def test_until_a_step_leaves_out_what_comes_after_it() -> None:
    assert steps(until="environment") == list(STEPS[:-1])
    assert steps("transfer", until="render") == ["preflight", "probe", "plan", "transfer", "render"]


def test_the_job_alone_needs_no_plan() -> None:
    assert steps(only=("job",)) == ["preflight", "probe", "job"]


@pytest.mark.parametrize("step", ["transfer", "verify"])
def test_a_step_that_builds_on_the_plan_brings_it_along(step: StepName) -> None:
    assert steps(only=(step,)) == ["preflight", "probe", "plan", step]
