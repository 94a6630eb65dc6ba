"""The lines of a job as it goes."""

from __future__ import annotations

import io

import pytest

from patcher.logs.milestones import Milestone
from patcher.terminal.live import Live, clock

REACHED = (
    Milestone("config", 0.0, usual=(2, 30)),
    Milestone("dataset", 6.0, "config", 6.0, usual=(1, 30)),
    Milestone("resource-pool", 7.0, "dataset", 1.0, usual=(5, 60)),
    Milestone("actor", 9.0, "resource-pool", 2.0, usual=(10, 120)),
    Milestone("rollout", 21.0, "actor", 12.0, usual=(30, 90)),
    Milestone("loop", 69.0, "rollout", 48.0, usual=(5, 60)),
    Milestone("loop", 150.0, None, 81.0, 1, 2),
    Milestone("loop", 178.0, None, 28.0, 2, 2),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "120")


def tell(stream: io.StringIO) -> str:
    live = Live(stream, indent="")
    for one in REACHED:
        live.milestone(one)
    live.end()
    return stream.getvalue()


def test_elsewhere_each_phase_has_its_line_when_it_is_over() -> None:
    assert tell(io.StringIO()).splitlines() == [
        "00:06  config 6 s (usual: 2–30 s)",
        "00:07  dataset",
        "00:09  resource pool",
        "00:21  actor 12 s (usual: 10–120 s)",
        "01:09  rollout 48 s (usual: 30–90 s)",
        "01:09  loop",
        "02:30  step 1 of 2, 81 s",
        "02:58  step 2 of 2, 28 s",
    ]


def test_on_a_terminal_one_line_grows() -> None:
    shown = [part.rpartition("\x1b[K")[2] for part in tell(Terminal()).split("\n")]
    assert shown == [
        "01:09  config 6 s ▸ dataset ▸ resource pool ▸ actor 12 s ▸ rollout 48 s ▸ loop",
        "02:58  step 1 · step 2 of 2, 28 s",
        "",
    ]


def test_time_shows_what_the_phase_has_taken_so_far_and_what_is_usual() -> None:
    stream = Terminal()
    live = Live(stream, indent="")
    for one in REACHED[:5]:
        live.milestone(one)
    live.time(41.0)
    assert stream.getvalue().rpartition("\x1b[K")[2] == (
        "00:41  config 6 s ▸ dataset ▸ resource pool ▸ actor 12 s ▸ rollout 20 s (usual: 30–90 s)"
    )


def test_hours() -> None:
    assert (clock(59.9), clock(3600 * 25 + 61)) == ("00:59", "25:01:01")
