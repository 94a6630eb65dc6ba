"""What was found in a log, before it is judged; and how the evidence of several logs of one run becomes one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from patcher.logs.milestones import PHASES, Phase
from patcher.records.symptoms import Symptom

_OF_PROGRAMS = frozenset((".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".ipynb"))
_OF_DOCUMENTS = frozenset((".md", ".rst", ".json"))
"""Files that name what a configuration holds, `actor_rollout_ref`, and are no logs for that."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log: its file, its number from 1, and `offset`, which grows along all that was read.

    Of a stack it is a frame, its process in the place of the file; the number is 0 where no line is known.
    """

    file: str
    number: int
    offset: int
    text: str
    """Without colours and Ray's prefix, at most 500 characters."""
    actors: tuple[str, ...] = ()
    speaker: str = ""
    """Ray's prefixes as they stand."""
    at: float | None = None
    """Seconds, by the time that the line itself or one shortly before it tells; only to compare with others'."""


@dataclass(slots=True)
class Hit:
    """A symptom's sign: where it was first seen and last, how often, and how many steps had been made before.

    A word that is everywhere is not looked at everywhere, so `count` can be too low.
    """

    symptom: Symptom
    first: LogLine
    last: LogLine
    count: int = 1
    steps: int = 0
    since: LogLine | None = None
    """The first one after the last sign of progress before `last`."""
    phase: Phase | None = None
    """The phase that the log was in at `since`."""
    aside: bool = False
    """Whether a process wrote it that only serves the run (a Ray daemon), so that it may be why another one ended."""
    weight: int = 0
    """How particular the sign is: of two on one line, the greater counts."""
    around: tuple[LogLine, ...] = ()
    """The lines about `since`, that one among them."""

    @property
    def start(self) -> LogLine:
        """Where what ended the run began."""
        return self.since or self.first


Nature = Literal["exception", "printed", "effect", "wrapper", "signal"]
"""What ended: an exception; one of which a program only prints what it says; one that comes of another's end, such as
a closed connection; one that only carries another; a process that a signal or its exit code tells of."""


@dataclass(slots=True)
class Raised:
    """An exception that ended a traceback, or stands alone, or a process that ended without one. `name` as printed."""

    name: str
    place: LogLine
    """The first one after the last sign of progress before `last`."""
    last: LogLine
    nature: Nature = "exception"
    chained: bool = False
    """Whether another exception of the same chain is nearer to the root."""
    handled: bool = False
    """Whether the log itself says that it was, or the interpreter ignored it."""
    count: int = 1
    phase: Phase | None = None
    frames: tuple[LogLine, ...] = ()
    """Lines of its traceback that name the innermost frames, those of verl and of own code first of all; last the line
    of code below the innermost one, where it tells something."""
    before: tuple[LogLine, ...] = ()
    """The lines of the log before it."""
    message: tuple[str, ...] = ()
    """The lines of its message, the first with its name; only of one that ended a traceback."""


@dataclass(slots=True)
class Evidence:
    """All that one pass over a log has found. Bounded, whatever the log's size."""

    hits: list[Hit] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    """The first and the last ones."""
    wait: Hit | None = None
    """The symptom of which the log's last words are the sign, where it ends without an end."""
    stood: Hit | None = None
    """The same of the words before somebody ended the run from outside; of a single log."""
    trends: list[Hit] = field(default_factory=list)
    phase: Phase | None = None
    spans: Mapping[Phase, float] = field(default_factory=dict)
    begun: Mapping[Phase, LogLine] = field(default_factory=dict)
    """The line at which each phase began."""
    step: int | None = None
    steps: int | None = None
    step_lines: tuple[str, ...] = ()
    """The last steps with their metrics, as printed: `step:3 - actor/loss:0.1 - …`."""
    progress: int = 0
    """The offset of the last sign that training went on: a step, a bar that moved."""
    progressed: LogLine | None = None
    """That sign."""
    progress_before: int = 0
    """The offset of the sign before that one."""
    finished: LogLine | None = None
    """The sign that the run came to its end."""
    failed: LogLine | None = None
    """The last line that tells of a status of a process that is not 0."""
    complete: LogLine | None = None
    """The last of all steps."""
    closed: LogLine | None = None
    """One of the last lines, which says that something has come to its end as it should."""
    complained: tuple[LogLine, ...] = ()
    """Those of the last lines that call themselves errors."""
    last: tuple[LogLine, ...] = ()
    """The last lines that say something."""
    unfinished: Raised | None = None
    """Of a log that ends within a traceback, before its exception: the code that the traceback came to."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of packages, as the log tells them."""
    ends: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By file: how many lines it has, and the offset behind it."""
    lines: int = 0
    size: int = 0

    @property
    def blank(self) -> bool:
        """Whether nothing in it is of a training run: no phase, step, progress, symptom, error or end.

        A file of sources that holds what a log would say, such as the text of an error that it raises, is no log.
        """
        if self.step is not None or self.phase not in (None, "config"):
            return False
        suffixes = {PurePath(name).suffix for name in self.ends}
        if suffixes and suffixes <= _OF_PROGRAMS:
            return True
        message = (self.hits, self.raised, self.wait, self.trends, self.finished, self.complete, self.closed)
        if any(message) or self.complained or self.unfinished is not None or self.progressed is not None:
            return False
        return self.phase is None or bool(suffixes and suffixes <= _OF_DOCUMENTS)


_NEVER = sys.maxsize
"""An offset behind all others: which log of several goes on behind a run's end is not known."""
_CLOCKS_APART = 1.0
"""Seconds by which the times of two processes may be off. Set by hand: loggers tell whole seconds, and write later."""


@dataclass(frozen=True, slots=True)
class LogOfRun:
    """One log of a run; `written` is when it was last written. In a log of `housekeeping` only symptoms count."""

    evidence: Evidence
    written: float
    housekeeping: bool = False


def merge_evidence(parts: Sequence[LogOfRun]) -> Evidence:
    """One evidence; offsets of places are their ranks by time."""
    if len(parts) == 1 and not parts[0].housekeeping:
        return parts[0].evidence
    ordered = sorted(parts, key=lambda part: part.written)
    own = [part for part in ordered if not part.housekeeping]
    found = _merge_findings(own, [part for part in ordered if part.housekeeping], _Ranks(ordered))
    for part in own:
        some = part.evidence
        found.wait = some.wait or found.wait
        found.finished, found.complete = some.finished or found.finished, found.complete or some.complete
        found.step, found.steps = _larger(found.step, some.step), _larger(found.steps, some.steps)
        found.step_lines = some.step_lines or found.step_lines
        found.phase = max((phase for phase in (found.phase, some.phase) if phase), key=PHASES.index, default=None)
        found.spans = {
            phase: max(found.spans.get(phase, 0.0), some.spans.get(phase, 0.0))
            for phase in PHASES
            if phase in found.spans or phase in some.spans
        }
        found.unfinished = some.unfinished or found.unfinished
        found.last, found.complained = some.last or found.last, some.complained if some.last else found.complained
    if found.complete is not None:
        found.complete = replace(found.complete, offset=-1)
    if found.finished is not None:
        found.finished = replace(found.finished, offset=_NEVER)
    for part in ordered:
        some = part.evidence
        found.versions = {**found.versions, **some.versions}
        found.ends = {**found.ends, **some.ends}
        found.lines, found.size = found.lines + some.lines, found.size + some.size
    return found


def _merge_findings(own: Sequence[LogOfRun], aside: Sequence[LogOfRun], ranks: _Ranks) -> Evidence:
    """What the run's own logs show; where that is a failure, also what logs of other processes show before it."""
    progress = max((time for part in own if (time := _time(part.evidence.progressed)) is not None), default=None)
    hits: dict[str, Hit] = {}
    for part in own:
        for hit in part.evidence.hits:
            if (start := _first_that_counts(hit.start, hit.last, part.evidence, progress)) is not None:
                _add_hit(hits, ranks.hit(replace(hit, since=start), part))
    raised = [
        ranks.raised(replace(one, place=start), part)
        for part in own
        for one in part.evidence.raised
        if (start := _first_that_counts(one.place, one.last, part.evidence, progress)) is not None
    ]
    trends = [ranks.hit(hit, part) for part in own for hit in part.evidence.trends]
    bad = [hit.start for hit in hits.values() if hit.symptom.kind == "failure"]
    bad += [one.place for one in raised if not one.handled]
    for part in aside if bad else ():
        for hit in part.evidence.hits:
            one = replace(ranks.hit(hit, part), aside=True)
            if hit.symptom.id not in hits and hit.symptom.part in ("cause", "end") and _may_have_led_to(one.first, bad):
                hits[hit.symptom.id] = one
    return Evidence(hits=list(hits.values()), raised=sorted(raised, key=lambda one: one.place.offset), trends=trends)


class _Ranks:
    """The ranks of places among all, by time where they tell one, else by when their log was last written."""

    def __init__(self, parts: Sequence[LogOfRun]) -> None:
        self._parts = {id(part): number for number, part in enumerate(parts)}
        keys = {self._key(place, part) for part in parts for place in _places(part.evidence)}
        self._ranks = {key: rank for rank, key in enumerate(sorted(keys), 1)}

    def place(self, place: LogLine, part: LogOfRun) -> LogLine:
        return replace(place, offset=self._ranks[self._key(place, part)])

    def hit(self, hit: Hit, part: LogOfRun) -> Hit:
        since = self.place(hit.since, part) if hit.since is not None else None
        return replace(hit, first=self.place(hit.first, part), last=self.place(hit.last, part), since=since)

    def raised(self, one: Raised, part: LogOfRun) -> Raised:
        return replace(one, place=self.place(one.place, part), last=self.place(one.last, part))

    def _key(self, place: LogLine, part: LogOfRun) -> tuple[float, int, int]:
        return (place.at if place.at is not None else part.written, self._parts[id(part)], place.offset)


def _places(evidence: Evidence) -> list[LogLine]:
    found = [place for hit in (*evidence.hits, *evidence.trends) for place in (hit.first, hit.last, hit.since) if place]
    return found + [place for one in evidence.raised for place in (one.place, one.last)]


def _add_hit(hits: dict[str, Hit], hit: Hit) -> None:
    known = hits.get(hit.symptom.id)
    if known is None:
        hits[hit.symptom.id] = hit
        return
    early, late = (known, hit) if known.start.offset <= hit.start.offset else (hit, known)
    last = max(early.last, late.last, key=lambda place: place.offset)
    hits[hit.symptom.id] = replace(early, last=last, count=early.count + late.count)


def _first_that_counts(first: LogLine, last: LogLine, own: Evidence, progress: float | None) -> LogLine | None:
    """Of the first and the last place of something, the one that the run did not go on after, as far as is known."""
    for place in (first, last):
        late = place.at is None or progress is None or place.at >= progress - _CLOCKS_APART
        if place.offset >= own.progress and late:
            return place
    return None


def _may_have_led_to(place: LogLine, bad: Sequence[LogLine]) -> bool:
    """Whether a line is early enough to be the cause of one of the others, as far as they have times."""
    times = [other.at for other in bad if other.at is not None]
    return place.at is None or not times or place.at <= max(times) + _CLOCKS_APART


def _time(place: LogLine | None) -> float | None:
    return place.at if place is not None else None


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
