"""How far a run has come, and whether it goes on: phases, steps, bars that move, and the course of metrics."""

from __future__ import annotations

import re

from patcher.diagnose.courses import Courses
from patcher.diagnose.evidence import Evidence, Place
from patcher.diagnose.heard import YEAR, Heard
from patcher.diagnose.progressing import Progress
from patcher.diagnose.times import time_of
from patcher.records.log_lines import Line
from patcher.records.milestones import Milestones, Phase

CONFIG = (
    *("actor_rollout_ref", "ray init kwargs", "[validate_config]", "taskrunner hostname", "verl.trainer."),
    "error executing job with overrides",
)
"""Words by which a log is known to be of a training by verl, in its first phase."""
ACTOR = ":actor_name:"
"""By which a worker's log tells whose it is."""
STEPS = ("training progress: ", "step:")
_STEP = re.compile(rb"step:(?P<step>\d+) - ")
_BAR = re.compile(rb"Training Progress: +\d+%\|[^|]*\| (?P<step>\d+)/(?P<all>\d+) \[")
_BEFORE = frozenset(b" \t)]m")
"""What may stand before a step, but for nothing."""
_HEAD = 400
"""Characters of a line in which a phase or a step is told."""


class Advance:
    """Takes the lines that may tell of it, in order."""

    def __init__(self, courses: Courses) -> None:
        self.progress = 0
        """The offset of the last sign that training goes on."""
        self.progress_before = 0
        """Of the one before."""
        self.progressed: Place | None = None
        self.complete: Place | None = None
        self._begun: dict[Phase, Place] = {}
        self._known = False
        """Whether the log is known to be of a training, or of an engine that one uses."""
        self._milestones = Milestones()
        self._bars = Progress()
        self._courses = courses
        self._zero: float | None = None

    @property
    def step(self) -> int | None:
        """Steps made, as verl tells them."""
        return self._milestones.step

    @property
    def phase(self) -> Phase | None:
        """The phase that the run is in, as far as it is known to have any."""
        return self._milestones.phase if len(self._milestones.begun) > 1 or self._known else None

    @property
    def looping(self) -> bool:
        """Whether training is in its loop, where most lines tell of steps alone."""
        return "loop" in self._begun

    def fill(self, found: Evidence) -> None:
        """Write into `found` what has been reached."""
        milestones = self._milestones
        found.step, found.steps, found.phase = milestones.step, milestones.steps, self.phase
        found.spans = {name: span for name, span in milestones.spans().items() if name in self._begun}
        found.begun, found.trends = self._begun, self._courses.holding()
        found.progress, found.progressed, found.complete = self.progress, self.progressed, self.complete
        found.progress_before = self.progress_before

    def take(self, heard: Heard) -> None:
        """A line that may be the sign of a phase, a step or a bar."""
        roles = [role for _, role in heard.words]
        self._known = self._known or any(role.config for role in roles)
        milestones, text = self._milestones, heard.label.text
        before = milestones.step
        if any(role.milestone or role.config for role in roles):
            now = self._now(heard.line.text) if any(role.begins for role in roles) else milestones.at
            line = Line(_as_ray_says(heard.line.speaker, text[:_HEAD]), heard.number, 0)
            for milestone in milestones.feed(line, now):
                self._begun.setdefault(milestone.phase, heard.place)
            if self._courses and (metrics := _metrics(heard.raw)) is not None:
                self._courses.feed(heard.raw[metrics.start() :], lambda: heard.place, milestones.step or 0)
        if milestones.step != before:
            self._moved(heard)
            self.complete = heard.place if milestones.step == milestones.steps else None
        elif any(role.progress for role in roles) and self._bars.moved(text, milestones):
            self._moved(heard)

    def take_step(self, heard: Heard) -> None:
        """A line that holds words of steps alone, of a run in its loop: the short way, as most lines are such."""
        raw, milestones = heard.raw, self._milestones
        metrics, bar = _metrics(raw), _bar(raw)
        if metrics is None and bar is None:
            if any(role.bar for _, role in heard.words) and self._bars.moved(heard.line.text, milestones):
                self._moved(heard)
            return
        step = 0
        if bar is not None:
            step, milestones.steps = int(bar["step"]), int(bar["all"])
        if metrics is not None:
            step = int(metrics["step"])
            if self._courses:
                self._courses.feed(raw[metrics.start() :], lambda: heard.place, step)
        if step > (milestones.step or 0):
            milestones.step, self.progress_before, self.progress = step, self.progress, heard.offset
            self.complete = heard.place if step == milestones.steps else None
            if heard.timed:
                self.progressed = heard.place

    def last_time(self, text: str) -> bool:
        """Take the time of a log's last lines; whether this one tells it."""
        if self._zero is None or time_of(text, YEAR) is None:
            return False
        self._milestones.at = max(self._milestones.at, self._now(text))
        return True

    def _moved(self, heard: Heard) -> None:
        if heard.offset > self.progress:
            self.progress_before, self.progress = self.progress, heard.offset
        self.progressed = heard.place

    def _now(self, text: str) -> float:
        """Seconds since the first line that told a time, as far as this one does."""
        at = time_of(text, YEAR)
        if at is None:
            return self._milestones.at
        if self._zero is None:
            self._zero = at
        return at - self._zero


def _as_ray_says(speaker: str, text: str) -> str:
    """A line with its speaker before it; in a worker's own log its actor is told once, at the beginning."""
    if text.startswith(ACTOR):
        return f"({text.removeprefix(ACTOR)} pid=0) {text}"
    return f"{speaker} {text}".lstrip()


def _metrics(raw: bytes) -> re.Match[bytes] | None:
    """Where a line's metrics begin."""
    at = raw.find(b"step:", 0, _HEAD)
    while at > 0 and raw[at - 1] not in _BEFORE:
        at = raw.find(b"step:", at + 1, _HEAD)
    return _STEP.match(raw, at) if at >= 0 else None


def _bar(raw: bytes) -> re.Match[bytes] | None:
    at = raw.find(b"Training Progress: ", 0, _HEAD)
    return _BAR.match(raw, at) if at >= 0 else None
