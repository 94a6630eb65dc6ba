"""The connection is cut at many points of each step: the right error, the old tree or the new, then the work."""

from __future__ import annotations

import pytest

from patcher.migrate.order import StepName
from tests.migrate.cuts import STEPS, Course
from tests.remote.cutting import Fault

GOODBYE = 1_500
"""Bytes at the end of the last step behind the last answer; how many there are differs from run to run."""
pytestmark = [pytest.mark.network, pytest.mark.hosts]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("step", STEPS)
def test_a_cut_at_any_byte_of_a_step(step: StepName, half: int, course: Course) -> None:
    """Every third line is soon well again; the others stay dead, until the command is run again on a sound one."""
    for number, point in enumerate(course.points(step)[half::2]):
        heals = number % 3 == 2
        course.reset()
        told = course.run(Fault(after=point, times=1 if heals else None))
        befallen = course.line.befallen
        course.left(told)
        only_goodbye = told.code == 0 and step == STEPS[-1] and point > course.whole[step][1] - GOODBYE
        if befallen and not heals and not only_goodbye:
            assert told.code == 5, told.text
            failed = told.json["steps"][-1]
            assert failed["status"] == "fail"
            assert "line" in failed["detail"]
            assert failed["fix"]
        else:
            assert told.code in (0, 5) if befallen else told.code == 0, told.text
        course.finished()
