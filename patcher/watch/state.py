"""How a run stands: its phase against the clock, what its log says of life, what its processes do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from patcher.logs.lines import Line, strip_prefix
from patcher.logs.milestones import Milestone, Milestones, Phase
from patcher.remote.host import Profile
from patcher.watch.activity import Activity, Pulses
from patcher.watch.limits import FLOOR, SILENT, Limits, limits
from patcher.watch.signs import Signs

Pace: TypeAlias = Literal["normal", "slow", "suspect"]
Reason: TypeAlias = Literal["limit", "bar", "still", "given"]
"""`limit`: the phase takes longer than it ever should, and is silent; `bar`: a progress bar does not move; `still`:
no process does anything; `given`: the limit of the command line."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run is at a time. `seconds`: in its phase, or since its last step; `silent`: since its log lived."""

    pace: Pace
    phase: Phase | None
    seconds: float
    silent: float
    limit: float
    usual: tuple[float, float]
    reason: Reason | None = None
    over: float = 0.0
    """How many times the limit it has waited by now."""


class State:
    """Takes lines and looks at processes as they come; times are seconds since the job's start."""

    def __init__(self, profile: Profile, given: float | None = None) -> None:
        self.profile: Profile = profile
        self.milestones = Milestones()
        self.reached: list[Milestone] = []
        self.signs = Signs()
        self.pulses = Pulses()
        self.activity = Activity()
        self.steps: list[float] = []
        self.begun = 0.0
        """From when on silence counts at the earliest: that watching began where no log says anything."""
        self.given = given
        self._phase: Phase | None = None
        self._since = 0.0
        self._telling: list[str] = []
        self._still: float | None = None

    @property
    def phase(self) -> Phase | None:
        return self.milestones.phase

    @property
    def limits(self) -> Limits:
        return limits(self.profile, self.phase, self.steps)

    def line(self, line: Line, at: float) -> tuple[Milestone, ...]:
        """Hear a line; what it has brought about, each with what is usual for it."""
        found = tuple(
            replace(one, usual=limits(self.profile, one.phase).usual) for one in self.milestones.feed(line, at)
        )
        text = strip_prefix(line.text).text
        self.signs.take(text, at)
        if self.signs.tells(text):
            self._telling.append(text)
        for one in found:
            self.reached.append(one)
            if one.step is not None:
                self.steps.append(one.took)
            self._since = max(self._since, one.at)
        if self.phase != self._phase:
            self._phase, self._since = (
                self.phase,
                max(self._since, self.milestones.begun.get(self.phase or "config", at)),
            )
            self._since = at if self.phase == "weight-sync" else self._since
        return found

    def telling(self) -> list[str]:
        """The lines that are worth showing and have not been asked for yet."""
        found, self._telling = self._telling, []
        return found

    def words(self, text: str, at: float) -> None:
        """Hear a line only for what it says of life; the first one of all is also the beginning."""
        if not self.milestones.begun and text.strip():
            self.line(Line(text, 1, 0), at)
        self.signs.take(strip_prefix(text).text, at)

    def pulse(self, look: Mapping[str, Any], at: float) -> None:
        """Hear what the processes have used by now."""
        self.activity = self.pulses.take(look)
        still = self.pulses.still_since
        self._still = None if still is None else at - (look["at"] - still)

    def standing(self, now: float) -> Standing:
        """Where the run is. `suspect` is to be proved by what its processes are seen to do."""
        lived = max(self.signs.lived, self.begun)
        silent = max(0.0, now - lived)
        held = self.limits
        seconds = max(0.0, now - max(self._since, 0.0))
        limit = self.given if self.given is not None else held.hung
        reason = self._reason(now, seconds, silent, held)
        pace: Pace = "suspect" if reason is not None else "slow" if seconds > held.usual[1] else "normal"
        if pace == "suspect" and self.activity.reads:
            pace = "slow"
        shown = FLOOR if reason == "bar" else held.still if reason == "still" else limit
        waited = silent if reason != "limit" else seconds
        return Standing(pace, self.phase, seconds, silent, shown, held.usual, reason, waited / shown)

    def _reason(self, now: float, seconds: float, silent: float, held: Limits) -> Reason | None:
        if self.given is not None:
            return "given" if silent >= self.given else None
        if self.signs.bar is not None and now - max(self.signs.moved, self.begun) >= FLOOR and silent >= FLOOR:
            return "bar"
        if self._still is not None and min(silent, now - self._still) >= held.still:
            return "still"
        if self.milestones.begun and seconds > held.hung and silent >= SILENT:
            return "limit"
        return None
