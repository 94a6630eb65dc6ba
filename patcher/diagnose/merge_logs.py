"""Merge the evidence of several logs of one run, in the order of their own times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.evidence import Evidence, Hit, LogLine, Raised
from patcher.logs.milestones import PHASES

_SLACK = 1.0
"""Seconds by which times of two processes may be off."""


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
        found.phase = max((phase for phase in (found.phase, some.phase) if phase), key=PHASES.index, default=None)
        found.spans = {
            phase: max(found.spans.get(phase, 0.0), some.spans.get(phase, 0.0))
            for phase in PHASES
            if phase in found.spans or phase in some.spans
        }
        found.last, found.complained = some.last or found.last, some.complained if some.last else found.complained
    if found.complete is not None:
        found.complete = replace(found.complete, offset=-1)
    for part in ordered:
        some = part.evidence
        found.versions = {**found.versions, **some.versions}
        found.ends = {**found.ends, **some.ends}
        found.lines, found.size = found.lines + some.lines, found.size + some.size
    return found


def _merge_findings(own: Sequence[LogOfRun], aside: Sequence[LogOfRun], ranks: _Ranks) -> Evidence:
    """What was wrong, by the run's own logs; and where anything was, what others said before that may be why."""
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
            if hit.symptom.id not in hits and hit.symptom.part == "cause" and _may_have_led_to(one.first, bad):
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
        late = place.at is None or progress is None or place.at >= progress - _SLACK
        if place.offset >= own.progress and late:
            return place
    return None


def _may_have_led_to(place: LogLine, bad: Sequence[LogLine]) -> bool:
    """Whether something was said in time to be why anything else ended, as far as times tell."""
    times = [other.at for other in bad if other.at is not None]
    return place.at is None or not times or place.at <= max(times) + _SLACK


def _time(place: LogLine | None) -> float | None:
    return place.at if place is not None else None


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
