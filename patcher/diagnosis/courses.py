"""The course of metrics over training steps, as the console logger prints them."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from patcher.diagnosis.evidence import Hit, Place
from patcher.records.symptoms import Symptom, Trend

_NUMBER = re.compile(rb"(?:[\w.]+\()?(?P<number>-?(?:nan|inf|\d[\d.]*(?:e[+-]?\d+)?))", re.IGNORECASE)
_NAMES = 20_000
"""Different names of metrics that are kept."""
_STEADY = 0.9
"""The correlation with the step from which on a metric counts as rising or falling."""
_CHANGE = 0.02
"""How much of its mean it must have changed by."""


@dataclass(slots=True)
class _Course:
    """One metric that one trend asks for."""

    symptom: Symptom
    trend: Trend
    also: tuple[re.Pattern[str], ...]
    values: deque[float] = field(default_factory=deque)
    began: Hit | None = None
    latest: Callable[[], Place] | None = None


class Courses:
    """Takes the lines of steps in order, and tells which trends hold at the end."""

    def __init__(self, symptoms: Sequence[Symptom]) -> None:
        self._trends = [
            (
                symptom,
                trend,
                re.compile(trend.metric, re.IGNORECASE),
                tuple(re.compile(one, re.IGNORECASE) for one in trend.also),
            )
            for symptom in symptoms
            for trend in symptom.trends
        ]
        self._courses: dict[str, list[_Course]] = {}
        self._others: dict[str, deque[float]] = {}
        self._wanted: dict[str, bool] = {}
        self._names: dict[int, list[tuple[int, bytes, str]]] = {}
        """By how many metrics a line has: which of them are wanted, and their names as they stand there."""
        self._longest = max((trend.steps for _, trend, _, _ in self._trends), default=1)

    def __bool__(self) -> bool:
        return bool(self._trends)

    def feed(self, line: bytes, place: Callable[[], Place], step: int) -> None:
        """The metrics of one step: `line` is `step:3 - actor/loss:0.1 - …`, and `place` makes its place if needed."""
        parts = line.split(b" - ")
        names = self._names.get(len(parts))
        if not names or not all(parts[at].startswith(head) for at, head, _ in names):
            if len(self._wanted) > _NAMES:
                self._wanted.clear()
                self._names.clear()
            heads = [(at, part.partition(b":")[0]) for at, part in enumerate(parts)]
            named = [(at, head + b":", head.decode("utf-8", "replace")) for at, head in heads]
            names = self._names[len(parts)] = [one for one in named if self._asked(one[2])]
        told: list[tuple[_Course, float]] = []
        for at, head, name in names:
            if value := _NUMBER.match(parts[at], len(head)):
                number = float(value["number"])
                told += ((course, number) for course in self._courses.get(name, ()))
                if name in self._others:
                    self._others[name].append(number)
        for course, number in told:
            self._take(course, number, place, step)

    def holding(self) -> list[Hit]:
        """The trends that hold at the last step, one for each symptom."""
        found: dict[str, Hit] = {}
        for courses in self._courses.values():
            for course in courses:
                if course.began is not None and course.latest is not None:
                    course.began.last = course.latest()
                    found.setdefault(course.symptom.id, course.began)
        return list(found.values())

    def _asked(self, name: str) -> bool:
        """Whether any trend wants this metric."""
        if (wanted := self._wanted.get(name)) is not None:
            return wanted
        for symptom, trend, metric, also in self._trends:
            if metric.fullmatch(name):
                course = _Course(symptom, trend, also, deque(maxlen=max(trend.steps, 1)))
                self._courses.setdefault(name, []).append(course)
            if any(pattern.fullmatch(name) for pattern in also):
                self._others.setdefault(name, deque(maxlen=self._longest))
        self._wanted[name] = name in self._courses or name in self._others
        return self._wanted[name]

    def _take(self, course: _Course, number: float, place: Callable[[], Place], step: int) -> None:
        course.values.append(number)
        if len(course.values) < max(course.trend.steps, 1) or not self._holds(course):
            course.began = course.latest = None
            return
        if course.began is None:
            first = place()
            course.began = Hit(course.symptom, first, first, 0, step, first, "loop", around=(first,))
        course.latest = place
        course.began.count += 1

    def _holds(self, course: _Course) -> bool:
        values, trend = course.values, course.trend
        match trend.test:
            case "nan":
                return not any(map(math.isfinite, values))
            case "below":
                return all(value < trend.value for value in values)
            case "above":
                return all(value > trend.value for value in values)
            case "constant":
                return len(values) > 1 and max(values) == min(values) and self._changed(course)
            case "rising":
                return _slope(values) > 0
            case "falling":
                return _slope(values) < 0

    def _changed(self, course: _Course) -> bool:
        """Whether what must have changed meanwhile has."""
        span = len(course.values)
        return all(
            any(
                len(recent := list(values)[-span:]) > 1 and max(recent) != min(recent)
                for name, values in self._others.items()
                if pattern.fullmatch(name)
            )
            for pattern in course.also
        )


def _slope(values: Sequence[float] | deque[float]) -> int:
    """1 where the values rise steadily, -1 where they fall, else 0."""
    count = len(values)
    if count < 3 or not all(map(math.isfinite, values)):
        return 0
    mean = sum(values) / count
    middle = (count - 1) / 2
    across = sum((at - middle) * (value - mean) for at, value in enumerate(values))
    spread = sum((value - mean) ** 2 for value in values)
    steps = sum((at - middle) ** 2 for at in range(count))
    if spread == 0 or abs(across) / math.sqrt(spread * steps) < _STEADY:
        return 0
    change = across / steps * (count - 1)
    if abs(change) < _CHANGE * abs(mean):
        return 0
    return 1 if change > 0 else -1
