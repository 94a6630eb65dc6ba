"""Normal, slow or hung: by the phase, by what the log says, by what the processes do."""

from __future__ import annotations

from typing import Any

import pytest

from patcher.logs.lines import Line
from patcher.report.watch import activity_line, phase_line
from patcher.watch.run_state import FACTOR, Activity, RunState, RunStatus, limits


class Run:
    """A job of which lines and looks at its processes come at given times."""

    def __init__(self, **given: Any) -> None:
        self.state = RunState(given.pop("profile", "debug"), **given)
        self._number = 0

    def say(self, text: str, at: float) -> None:
        self._number += 1
        self.state.take_line(Line(f"{text}\n", self._number, self._number), at)

    def work(self, first: int, last: int, *, cpu: float = 0.0, disk: int = 0) -> None:
        """Looks every three seconds, with so many percent of a core and bytes a second."""
        for at in range(first, last, 3):
            self._cpu = getattr(self, "_cpu", 0.0) + 3 * cpu / 100
            self._disk = getattr(self, "_disk", 0) + 3 * disk
            used = {"cpu": self._cpu, "disk": self._disk, "called": 0, "memory": 1 << 30}
            process = {"host": "here", "pid": 1, "start": 1, "name": "python", "system": False, **used}
            self.state.take_usage({"at": 1000.0 + at, "processes": [process]}, float(at))

    def at(self, seconds: float) -> tuple[str, str | None]:
        status = self.state.status(seconds)
        return status.pace, status.reason


def rollout(**given: Any) -> Run:
    run = Run(**given)
    run.say("config", 0)
    run.say("dataset len: 8", 10)
    run.say("colocated worker base class x", 20)
    run.say("Initializing a V1 LLM engine (v0.11.0)", 50)
    return run


def test_a_phase_is_normal_then_slow_then_suspect() -> None:
    run = rollout()
    assert [run.at(seconds) for seconds in (100, 150, 345)] == [("normal", None), ("slow", None), ("slow", None)]
    assert run.at(360) == ("suspect", "limit")
    assert run.state.status(360).limit == pytest.approx(FACTOR * 90)
    assert run.state.status(360).phase == "rollout"


def test_the_standard_profile_waits_as_long_as_its_loads_take() -> None:
    assert rollout(profile="standard").at(1500) == ("normal", None)
    assert limits("standard", "rollout").hung == pytest.approx(FACTOR * 1800)


def test_a_load_that_reads_is_slow_not_hung() -> None:
    run = rollout()
    run.work(300, 360, disk=50 << 20)
    assert run.at(360)[0] == "slow"
    run.work(360, 420)
    assert run.at(420) == ("suspect", "limit")


def test_new_lines_put_it_off_and_the_same_line_again_does_not() -> None:
    run = rollout()
    run.say("something new", 350)
    assert run.at(360)[0] == "slow"
    for at in range(360, 500, 10):
        run.say(f"INFO 01-11 10:00:{at % 60:02} [shm_broadcast.py:501] No available shared memory broadcast block", at)
    assert run.at(500) == ("suspect", "limit")


def test_a_progress_bar_that_does_not_move_for_two_minutes() -> None:
    run = Run(profile="standard")
    run.say("Generating train split: 0 examples [00:00, ? examples/s]", 10)
    assert run.at(100) == ("normal", None)
    assert run.at(131) == ("suspect", "bar")
    run.work(100, 131, disk=10 << 20)
    assert run.at(131)[0] == "slow"


def test_the_bar_of_the_training_itself_may_stand_for_a_long_step() -> None:
    run = Run(profile="standard")
    run.say("Training Progress:   0%|          | 0/100 [00:00<?, ?it/s]", 10)
    assert run.at(600) == ("normal", None)


def test_when_nothing_is_done_at_all_three_minutes_are_enough() -> None:
    run = rollout(profile="standard")
    run.work(50, 231)
    assert run.at(225) == ("normal", None)
    assert run.at(233) == ("suspect", "still")


def test_one_process_that_computes_is_not_still() -> None:
    run = rollout(profile="standard")
    run.work(50, 400, cpu=90)
    assert run.at(400) == ("normal", None)


def test_the_loop_is_measured_by_the_runs_own_steps() -> None:
    run = rollout()
    run.say("Training Progress:   0%|          | 0/9 [00:00<?, ?it/s]", 100)
    for step, at in enumerate((300, 400, 500), 1):
        run.say(f"step:{step} - actor/loss:0.1", at)
    assert run.state.limits.usual == (100, 100)
    assert run.at(800)[0] == "slow"
    assert run.at(840) == ("suspect", "limit")
    assert run.state.status(840).seconds == 340


def test_a_weight_sync_inside_the_loop_has_limits_of_its_own() -> None:
    run = rollout()
    run.say("Training Progress:   0%|          | 0/9 [00:00<?, ?it/s]", 100)
    run.say("step:1 - actor/loss:0.1", 200)
    run.say("[uky] [SYNC] update_weights begin 0.0s pid=7", 210)
    assert run.state.status(240).phase == "weight-sync"
    assert run.at(340) == ("suspect", "limit")
    run.say("[uky] [SYNC] update_weights end 99.0s pid=7", 341)
    assert run.state.status(342).phase == "loop"


def test_the_limit_of_the_command_line_counts_alone() -> None:
    run = rollout(given=20.0)
    assert [run.at(seconds) for seconds in (65, 71)] == [("normal", None), ("suspect", "given")]


def test_silence_counts_from_when_watching_began_where_nothing_is_known() -> None:
    run = Run(profile="standard", given=20.0)
    run.state.begun = 500.0
    assert run.at(510)[0] != "suspect"
    assert run.at(521) == ("suspect", "given")


def test_lines_that_matter_are_shown_once() -> None:
    run = rollout()
    run.state.telling()
    run.say("(WorkerDict pid=7) [ACTOR] init_model START | pid=7", 60)
    for at in (61, 62):
        run.say(f"2026-01-11 10:00:{at} ERROR something is wrong", at)
    run.say("INFO nothing of interest", 63)
    assert run.state.telling() == ["[ACTOR] init_model START | pid=7", "2026-01-11 10:00:61 ERROR something is wrong"]
    assert run.state.telling() == []


def test_short_steps_and_a_single_process_are_told_as_such() -> None:
    status = RunStatus("normal", "loop", 2.0, 2.0, 120.0, (0.0, 0.02))
    assert "usual: less than 1 s" in str(phase_line(status, "loop"))
    assert str(activity_line(Activity(9.0, processes=1))).startswith("1 process, ")
