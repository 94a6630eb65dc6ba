"""Trends of metrics over the training steps, as verl prints them: `step:3 - actor/loss:0.1 - …`."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patcher.diagnose.evidence import Hit, LogLine
from patcher.diagnose.timed_pattern import TimedPattern
from patcher.records.symptoms import Symptom, Trend

_NUMBER = re.compile(rb"(?:[\w.]+\()?(?P<number>-?(?:nan|inf|\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?![\d.]))", re.IGNORECASE)
_NAMES = 20_000
"""Names of metrics without a trend that are remembered: verl prints some hundred, a made-up log any number."""
_LONGEST_NAME = 300
"""Characters of a name that are read. Set by hand: names of metrics are far shorter."""
# Set by hand: a metric that falls with some small steps back counts, and one that varies around its mean does not.
_STEADY = 0.9
"""The correlation with the step above which a metric counts as rising or falling."""
# Set by hand: a steady drift of less than two percent over the steps of a trend is not worth a finding.
_CHANGE = 0.02
"""The least change, as a share of the mean."""


_IS_NAN = re.compile(r"(?P<name>[A-Za-z][\w/]{0,60})['\"]?\s*[:=][\s'\"-]*nan\b", re.IGNORECASE)
_IS_NUMBER = re.compile(r"(?P<name>[A-Za-z][\w/]{0,60})['\"]?\s*[:=][\s'\"-]*\d")


def are_numbers_again(before: str, now: str) -> bool:
    """Whether all that was nan in one line is a number in a later one: `grad_norm: nan` and `grad_norm: 3.98`. Mixed
    precision looks for its scale in the first steps, and some of them overflow."""
    lost = {found["name"] for found in _IS_NAN.finditer(before)}
    return bool(lost) and lost <= {found["name"] for found in _IS_NUMBER.finditer(now)}


@dataclass(slots=True)
class _WatchedMetric:
    """One metric that one trend is about."""

    symptom: Symptom
    trend: Trend
    also: tuple[TimedPattern, ...]
    values: deque[float]
    alone: Callable[[float], bool] | None
    """The test of a single value, for trends that test each value by itself; None for a trend over several values."""
    run: int = 0
    """How many values in a row have passed it."""
    began: Hit | None = None
    latest: Callable[[], LogLine] | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A metric that any trend needs, at its position in a line."""

    at: int
    head: bytes
    watched: Sequence[_WatchedMetric]
    values: deque[float] | None
    """The values of a metric that must have changed meanwhile (`also` of a trend)."""


class MetricTrends:
    """Takes the lines of steps in order, and finds which trends hold at the last step."""

    def __init__(self, symptoms: Sequence[Symptom]) -> None:
        self._trends = [
            (
                symptom,
                trend,
                TimedPattern(rf"\A(?:{trend.metric})\Z"),
                tuple(TimedPattern(rf"\A(?:{one})\Z") for one in trend.also),
            )
            for symptom in symptoms
            for trend in symptom.trends
        ]
        self._watched: dict[str, list[_WatchedMetric]] = {}
        self._others: dict[str, deque[float]] = {}
        self._unwanted: set[str] = set()
        self._layouts: dict[int, list[_Wanted]] = {}
        """By the number of metrics on a line: which of them are wanted."""
        self._longest = max((trend.steps for _, trend, _, _ in self._trends), default=1)

    def __bool__(self) -> bool:
        return bool(self._trends)

    def feed(self, line: bytes, place: Callable[[], LogLine], step: int) -> None:
        """Take the metrics of one step.

        Args:
            line: `step:3 - actor/loss:0.1 - …`, from the step on.
            place: makes the `LogLine`, which is needed for few lines only.
        """
        parts = line.split(b" - ")
        readings: list[tuple[_WatchedMetric, float]] = []
        for wanted in self._layout(parts):
            number = _number(parts[wanted.at], len(wanted.head))
            if number is None:
                continue
            if wanted.values is not None:
                wanted.values.append(number)
            for metric in wanted.watched:
                if metric.alone is None or metric.began is not None or metric.alone(number):
                    readings.append((metric, number))
                else:
                    metric.run = 0
        for metric, number in readings:
            self._take(metric, number, place, step)

    def _layout(self, parts: Sequence[bytes]) -> list[_Wanted]:
        """The wanted metrics of a line. Lines with equally many metrics mostly have them at the same positions."""
        known = self._layouts.get(len(parts))
        if known:
            for wanted in known:
                if not parts[wanted.at].startswith(wanted.head):
                    break
            else:
                return known
        if len(self._unwanted) > _NAMES:
            self._unwanted.clear()
            self._layouts.clear()
        found = []
        for at, part in enumerate(parts):
            head = part.partition(b":")[0]
            name = head[:_LONGEST_NAME].decode("utf-8", "replace")
            if self._is_wanted(name):
                found.append(_Wanted(at, head + b":", self._watched.get(name, ()), self._others.get(name)))
        self._layouts[len(parts)] = found
        return found

    @property
    def too_slow(self) -> list[tuple[Symptom, str]]:
        """The patterns of metrics that took too long."""
        return [
            (symptom, search.pattern)
            for symptom, _, pattern, also in self._trends
            for search in (pattern, *also)
            if search.is_too_slow
        ]

    def holding(self) -> list[Hit]:
        """The trends that hold at the last step, one for each symptom."""
        found: dict[str, Hit] = {}
        for metrics in self._watched.values():
            for metric in metrics:
                if metric.began is not None and metric.latest is not None:
                    metric.began.last = metric.latest()
                    found.setdefault(metric.symptom.id, metric.began)
        return list(found.values())

    def _is_wanted(self, name: str) -> bool:
        """Whether any trend needs this metric."""
        if name in self._watched or name in self._others:
            return True
        if name in self._unwanted:
            return False
        for symptom, trend, pattern, also in self._trends:
            if pattern.finds(name):
                metric = _WatchedMetric(
                    symptom, trend, also, deque(maxlen=max(trend.steps, 1)), _single_value_test(trend)
                )
                self._watched.setdefault(name, []).append(metric)
            if any(other.finds(name) for other in also):
                self._others.setdefault(name, deque(maxlen=self._longest))
        if name in self._watched or name in self._others:
            return True
        self._unwanted.add(name)
        return False

    def _take(self, metric: _WatchedMetric, number: float, place: Callable[[], LogLine], step: int) -> None:
        if not self._holds(metric, number):
            metric.began = metric.latest = None
            return
        if metric.began is None:
            first = place()
            metric.began = Hit(metric.symptom, first, first, 0, step, first, "loop", around=(first,))
        metric.latest = place
        metric.began.count += 1

    def _holds(self, metric: _WatchedMetric, number: float) -> bool:
        """Whether the trend holds, including this value."""
        steps = max(metric.trend.steps, 1)
        if metric.alone is not None:
            metric.run = metric.run + 1 if metric.alone(number) else 0
            return metric.run >= steps
        values = metric.values
        values.append(number)
        if len(values) < steps:
            return False
        if metric.trend.test == "constant":
            return len(values) > 1 and max(values) == min(values) and self._changed(metric)
        return _slope(values) == (1 if metric.trend.test == "rising" else -1)

    def _changed(self, metric: _WatchedMetric) -> bool:
        """Whether each metric that must have changed meanwhile has done so."""
        span = len(metric.values)
        return all(
            any(
                len(recent := list(values)[-span:]) > 1 and max(recent) != min(recent)
                for name, values in self._others.items()
                if pattern.finds(name)
            )
            for pattern in metric.also
        )


def _single_value_test(trend: Trend) -> Callable[[float], bool] | None:
    match trend.test:
        case "nan":
            return lambda value: not math.isfinite(value)
        case "below":
            return lambda value: value < trend.value
        case "above":
            return lambda value: value > trend.value
    return None


def _number(part: bytes, at: int) -> float | None:
    """The number behind the metric's name, which is `at` bytes long: `0.1` or `np.float64(0.1)`."""
    try:
        return float(part[at:])
    except ValueError:
        found = _NUMBER.match(part, at)
        return float(found["number"]) if found else None


def _slope(values: Sequence[float] | deque[float]) -> int:
    """1 where the values rise steadily, -1 where they fall steadily, else 0."""
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
