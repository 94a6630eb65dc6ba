"""What may have ended a run, in the order in which it is to be believed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patcher.diagnose.evidence import Evidence, Hit, Nature, Place, Raised
from patcher.diagnose.labels import unlabelled
from patcher.records.milestones import Phase
from patcher.records.symptoms import Part, Symptom

_KNOWN: Mapping[Part, float] = {"cause": 0, "effect": 2, "wrapper": 3}
_UNKNOWN: Mapping[Nature, float] = {"exception": 1, "signal": 2.1, "effect": 2.2, "wrapper": 3.2}
"""An exception that no record covers is a better root than an effect, and a worse one than a cause."""
_FOLLOWS, _FOLLOWS_TOO = 2.0, 0.5
"""At best, for what follows from something else that was seen; an effect that does is behind those that do not."""
_STALL = 1.7
"""At best, for what makes a run stand still: what ended it in the end says more."""
_ASIDE = 1.6
"""At best, for what a process says that only keeps house."""
_SURVIVED = 1.5
"""Added where the run went on for a while."""
QUIET = 150
"""Lines behind an exception that no record covers, and nothing else wrong in them, from which on it was survived."""
_WHILE = 40
"""Lines behind a failure in which a phase may begin that others were about to enter anyway."""
_SILENT = 2.1
"""The rank from which on a sign tells of an end, and not of its cause."""
_WRONG = re.compile(
    r"\b(?:errors?|fatal|fail(?:ed|ure)?|abort(?:ed|ing)?|cannot|could not|unable|invalid|denied|refused|expired)\b",
    re.IGNORECASE,
)
_MESSAGE = 12
"""Lines of an exception's message that a symptom's sign may stand in."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be the root. The least `rank` is, and among equals the earliest."""

    rank: float
    place: Place
    count: int
    survived: bool
    symptom: Symptom | None = None
    phase: Phase | None = None
    about: tuple[Place, ...] = ()
    """Lines that show it."""
    weight: int = 0


def candidates(evidence: Evidence, hits: Sequence[Hit]) -> list[Candidate]:
    """Failures that the run did not get over, the likeliest root first. `hits`: those that the versions allow."""
    failures = [hit for hit in hits if hit.symptom.kind in ("failure", "stall") and _counts(hit.start, evidence)]
    seen = {hit.symptom.id for hit in failures}
    known = evidence.hits
    unknown = [
        one
        for one in evidence.raised
        if not one.chained and not one.handled and _counts(one.place, evidence) and not _covered(one, known)
    ]
    bad = _last_bad(evidence, failures, unknown)
    found = [_of_hit(hit, seen, evidence) for hit in failures]
    found += [_of_raised(one, evidence, bad) for one in unknown]
    if found and min(one.rank for one in found) >= _FOLLOWS:
        found += [_of_raised(one, evidence, bad) for one in evidence.raised if _in_the_step_before(one, evidence)]
    found.sort(key=lambda one: (one.rank, one.place.offset, -one.weight))
    return [*_announced(found), *found]


def _counts(place: Place, evidence: Evidence) -> bool:
    """Whether the run neither went on training afterwards nor had come to its end before."""
    if evidence.finished is not None:
        return False
    return place.offset >= evidence.progress and (evidence.complete is None or place.offset > evidence.complete.offset)


def _in_the_step_before(one: Raised, evidence: Evidence) -> bool:
    """Whether an exception may be what effects follow from: other ranks can make one step more before they notice."""
    plain = one.nature == "exception" and not one.chained and not one.handled
    return (
        plain and evidence.progress_before <= one.place.offset < evidence.progress and not _covered(one, evidence.hits)
    )


def _of_hit(hit: Hit, seen: set[str], evidence: Evidence) -> Candidate:
    symptom, survived = hit.symptom, _phase_later(hit.start, evidence)
    rank = _KNOWN[symptom.part]
    if seen & set(symptom.follows) - {symptom.id}:
        rank = max(rank, _FOLLOWS) + (_FOLLOWS_TOO if rank >= _FOLLOWS else 0)
    rank = max(rank, _STALL) if symptom.kind == "stall" else rank
    rank = max(rank, _ASIDE) if hit.aside else rank
    rank += _SURVIVED if survived and rank < _SURVIVED else 0
    return Candidate(rank, hit.start, hit.count, survived, symptom, hit.phase, hit.around, hit.weight)


def _of_raised(one: Raised, evidence: Evidence, bad: Mapping[str, int]) -> Candidate:
    lines, _ = evidence.ends.get(one.last.file, (0, 0))
    quiet = lines - bad.get(one.last.file, lines) > QUIET
    survived = quiet or _phase_later(one.place, evidence)
    rank = _UNKNOWN[one.nature] + (_SURVIVED if survived else 0)
    return Candidate(rank, one.place, one.count, survived, None, one.phase, (*one.before, *one.frames, one.place))


def _announced(found: Sequence[Candidate]) -> list[Candidate]:
    """The last words before the first sign, where all signs only tell that something has ended, and not why."""
    if not found or (found[0].symptom is not None and found[0].symptom.part != "wrapper") or found[0].rank < _SILENT:
        return []
    first = min(found, key=lambda one: one.place.offset)
    for place in reversed([place for place in first.about if place.number < first.place.number]):
        told = unlabelled(place.text)
        if told.level in ("DEBUG", "INFO", "WARNING"):
            return []
        if _WRONG.search(told.text):
            return [Candidate(_SILENT, place, 1, survived=False, phase=first.phase, about=first.about)]
    return []


def _phase_later(place: Place, evidence: Evidence) -> bool:
    """Whether a phase began a good while afterwards."""
    return any(
        begun.offset > place.offset and begun.file == place.file and begun.number > place.number + _WHILE
        for begun in evidence.begun.values()
    )


def _last_bad(evidence: Evidence, hits: Sequence[Hit], raised: Sequence[Raised]) -> Mapping[str, int]:
    """By file, the last line in which anything is wrong."""
    places = [hit.last for hit in hits] + [one.last for one in raised] + list(evidence.complained)
    found: dict[str, int] = {}
    for place in places:
        found[place.file] = max(found.get(place.file, 0), place.number)
    return found


def _covered(one: Raised, hits: Sequence[Hit]) -> bool:
    """Whether a symptom speaks of this exception: on its line, or as a cause anywhere in its traceback or message."""
    begin = one.frames[0].number if one.frames else one.place.number
    for hit in hits:
        for place in {hit.start, hit.last}:
            if place.file == one.place.file and place.number == one.place.number:
                return True
            within = begin <= place.number <= one.place.number + _MESSAGE
            if (
                within
                and hit.symptom.part == "cause"
                and (place.file, place.speaker) == (one.place.file, one.place.speaker)
            ):
                return True
    return False
