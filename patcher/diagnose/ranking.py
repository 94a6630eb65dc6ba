"""How likely a symptom or an exception is the root cause: its rank, and whether the run survived it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.diagnose.evidence import Evidence, Hit, LogLine, Nature, Raised
from patcher.diagnose.line_meaning import is_warning
from patcher.logs.labels import strip_labels
from patcher.logs.milestones import Phase
from patcher.records.symptoms import Part, Symptom

KNOWN: Mapping[Part, float] = {"cause": 0, "end": 0, "effect": 2, "wrapper": 3}
UNKNOWN: Mapping[Nature, float] = {
    "exception": 1,
    "printed": 1.1,
    "told": 1.97,
    "signal": 2.1,
    "effect": 2.2,
    "wrapper": 3.2,
}
"""An exception that no record covers is a more likely root than an effect, and a less likely one than a cause."""
# The ranks are an order and not measured; the labelled logs of `make bench-diagnosis` keep them in place. `follows` in
# a symptom record names the symptoms that it is a consequence of, as the end of an engine that ran out of memory.
FOLLOWS, _FOLLOWS_TOO = 2.0, 0.5
"""The least rank of what follows from another symptom that was found; an effect that follows is behind other effects.
"""
_STALL = 1.7
"""The least rank of what makes a run stall: what ended the run in the end says more."""
_BY_RAY_DAEMON = 1.6
"""The least rank of what a service process reports, such as a Ray daemon."""
_ENDED = 1.2
"""The rank of an end as seen from outside, `Killed`, where an earlier exception that no record covers says more."""
EARLIER = 0.05
"""Added for an exception of a process whose errors another one shows, where a later one is shown too."""
_GENERIC = 0.5
"""Added for a record of many causes: it comes after a specific one, and before an exception that no record covers."""
_WARNED = 0.4
"""The least rank of what a program only warns of. The program mostly did without, so it is the cause only if nothing
else is."""
_BY_PYTHON = 1.3
"""The least rank of what a warning of Python says: code that warns goes on."""
_SURVIVED = 1.5
"""Added where the run went on for a while."""
# A trainer that catches an exception goes on printing other lines; one that dies prints nothing of interest after it.
_QUIET = 150
"""Lines after an exception that no record covers, with nothing else wrong in them, after which it counts as survived.
Set by hand."""
WHILE = 40
"""Lines after a failure in which other ranks may still enter a phase. Set by hand: the ranks of a node report that they
enter it within some dozen lines."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be the root cause. The lowest `rank` is the most likely; of equal ranks, the earliest line."""

    rank: float
    place: LogLine
    count: int
    survived: bool
    symptom: Symptom | None = None
    phase: Phase | None = None
    about: tuple[LogLine, ...] = ()
    """Lines that show it."""
    weight: int = 0
    raised: Raised | None = None


def candidate_of_hit(hit: Hit, seen: set[str], evidence: Evidence, first_raised: int | None) -> Candidate:
    """Rank a symptom. `first_raised`: the offset of the first exception that no record covers."""
    symptom, survived = hit.symptom, phase_later(hit.start, evidence)
    # Raised once more since: one rank fails, the others begin a phase, and the driver tells the failure at the end.
    again = any(one.last == hit.last and not one.handled for one in evidence.raised)
    survived = survived and not (again and not phase_later(hit.last, evidence))
    rank = KNOWN[symptom.part] + (_GENERIC if symptom.generic else 0)
    if symptom.part == "end" and first_raised is not None and first_raised < hit.start.offset:
        rank = _ENDED
    if seen & set(symptom.follows) - {symptom.id}:
        rank = max(rank, FOLLOWS) + (_FOLLOWS_TOO if rank >= FOLLOWS else 0)
    rank = max(rank, _STALL) if symptom.kind == "stall" else rank
    raised = raised_at(hit.start, evidence)
    # `WARNING … Traceback …`: the program went on without it. It may still be the only sign of a failure.
    rank = max(rank, _BY_RAY_DAEMON) if hit.by_ray_daemon or (raised is not None and raised.handled) else rank
    if all(strip_labels(place.text).level in ("DEBUG", "INFO", "WARNING") for place in (hit.start, hit.last)):
        rank = max(rank, _WARNED)
    rank = max(rank, _BY_PYTHON) if _is_of_warning(hit) else rank
    rank += _SURVIVED if survived and rank < _SURVIVED else 0
    survived = survived or _is_outlived(hit, raised, evidence)
    return Candidate(rank, hit.start, hit.count, survived, symptom, hit.phase, hit.around, hit.weight, raised)


def _is_outlived(hit: Hit, raised: Raised | None, evidence: Evidence) -> bool:
    """Whether what was only warned of, or handled, is far enough from the log's end to be known to have ended
    nothing."""
    lines, _ = evidence.ends.get(hit.last.file, (0, 0))
    warned = all(strip_labels(place.text).level == "WARNING" for place in (hit.start, hit.last))
    return (warned or (raised is not None and raised.handled)) and lines - hit.last.number > _OUTLIVED


_OUTLIVED = 6
"""Lines after what was warned of or handled from which on the process has gone on. Set by hand."""


def _is_of_warning(hit: Hit) -> bool:
    """Whether the line is a warning of Python, or its message, which ends with the call: `  warnings.warn(`."""
    below = range(hit.start.number + 1, hit.start.number + _WARNED_IN)
    return is_warning(hit.start.text) or any(one.number in below and _WARNS.match(one.text) for one in hit.around)


_WARNED_IN = 4
"""Lines of a warning's message, at most. Set by hand."""
_WARNS = re.compile(r"\s+warnings\.warn\(")


def raised_at(place: LogLine, evidence: Evidence) -> Raised | None:
    """The exception on that line."""
    return next(
        (one for one in evidence.raised if (one.place.file, one.place.number) == (place.file, place.number)), None
    )


def candidate_of_exception(one: Raised, evidence: Evidence, bad: Mapping[str, int]) -> Candidate:
    """Rank an exception that no record covers. `bad`: by file, the last line in which anything is wrong."""
    lines, _ = evidence.ends.get(one.last.file, (0, 0))
    quiet = lines - bad.get(one.last.file, lines) > _QUIET
    survived = quiet or phase_later(one.last, evidence)
    rank = UNKNOWN[one.nature] + (_SURVIVED if survived else 0)
    # Ray holds lines back that it has printed before, so the first one was above where the log begins.
    rank -= EARLIER if one.repeated else 0
    because = (one.because,) if one.because is not None else ()
    shown = {(place.number, place.text): place for place in (*because, *one.before, *one.frames, one.place)}
    about = tuple(sorted(shown.values(), key=lambda place: place.number))
    return Candidate(rank, one.because or one.place, one.count, survived, None, one.phase, about, raised=one)


def phase_later(place: LogLine, evidence: Evidence) -> bool:
    """Whether a phase began a good while after a line."""
    return any(
        begun.offset > place.offset and begun.file == place.file and begun.number > place.number + WHILE
        for begun in evidence.begun.values()
    )
