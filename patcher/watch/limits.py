"""When a phase is slow, and from when on it may hang: from what it usually takes in this profile.

Usual is up to three minutes and hung from ten on, as experience with small runs has it; a phase that may usually take
longer has the same factor. A progress bar that has not moved for two minutes stands still, unless something is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patcher.profiles.phase_durations import usual_seconds
from patcher.records.milestones import Phase
from patcher.remote.host import Profile

FACTOR = 10 / 3
"""Of the usual highest time."""
FLOOR = 120.0
"""Seconds below which nothing is taken to hang; also those of a progress bar that does not move."""
STILL = 180.0
"""Seconds without a line and without any work of the job's processes, whatever the phase."""
SILENT = 60.0
"""Seconds without a new line that a phase over its limit must have had to be taken to hang."""
RECENT = 20
"""Steps whose times count for the next one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of a phase, or of one step of the loop: `usual` up to the second, `hung` from there on."""

    usual: tuple[float, float]
    hung: float
    still: float = STILL


def limits(profile: Profile, phase: Phase | None, steps: Sequence[float] = ()) -> Limits:
    """What holds for a phase. `steps` are the times of the run's own steps, which count for the next one.

    The first step warms up, so it counts only as long as there is no other.
    """
    usual = usual_seconds(profile, phase or "config")
    recent = (steps[1:] or steps)[-RECENT:]
    if phase == "loop" and recent:
        usual = (min(recent), max(recent))
        return Limits(usual, max(FLOOR, FACTOR * usual[1]), max(STILL, FACTOR * usual[1]))
    return Limits(usual, max(FLOOR, FACTOR * usual[1]), STILL)
