"""Evidence -> what it comes to: the verdict, the root, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.diagnose.closing import hands_up, says_nothing
from patcher.diagnose.evidence import Evidence, Hit, Place
from patcher.diagnose.fixing import Fitting, fits, offers
from patcher.diagnose.model import Diagnosis, Finding, Role, Verdict
from patcher.diagnose.ranking import Candidate, candidates
from patcher.records.milestones import PHASES, Phase

_END = 40
"""Lines from the end in which the sign of a stall counts."""
_COMPLAINT = 4
"""Telling lines from the end in which an error that is no exception ends a run."""


def judge(evidence: Evidence, fitting: Fitting, *, ended: bool | None = None, silent: bool | None = None) -> Diagnosis:
    """What a log comes to.

    Args:
        ended: whether the run is known to be over; None where only the log can tell.
        silent: whether it is known to have said nothing for longer than its phase may; None where that is not known.
    """
    hits = [hit for hit in evidence.hits if hit.count >= hit.symptom.times and fits(hit.symptom.when, fitting.versions)]
    found = candidates(evidence, hits)
    if not found:
        found = _complained(evidence, ended)
    stalls = _stalls(evidence, hits, found) if silent is not False and not ended else []
    verdict: Verdict
    if any(not one.survived and (one.symptom is None or one.symptom.kind == "failure") for one in found):
        verdict = "failed"
    elif evidence.finished is not None or evidence.complete is not None or evidence.closed is not None:
        verdict, found = "ok", []
    elif stalls or silent:
        verdict, found = "stalled", stalls
    else:
        verdict, found = "running", []
    findings = _findings(found, fitting)
    findings += _courses(evidence, hits, fitting, rooted=bool(findings))
    if verdict in ("failed", "stalled"):
        notices = [hit for hit in hits if hit.symptom.kind == "notice"]
        findings += [_of_hit(hit, "cascade", fitting) for hit in notices]
    root = found[0] if found else None
    return Diagnosis(
        verdict,
        _phase(root, evidence),
        tuple(findings),
        root.about if root is not None and root.about else _telling(evidence),
        step=evidence.step,
        steps=evidence.steps,
        spans=evidence.spans,
        versions=fitting.versions,
        lines=evidence.lines,
        size=evidence.size,
        blank=evidence.blank,
    )


def _phase(root: Candidate | None, evidence: Evidence) -> Phase | None:
    """Where it ended: as the log tells, or the next phase, where what ended it belongs to that one."""
    if root is None:
        return evidence.phase
    own = root.symptom.phase if root.symptom is not None else ()
    told = root.phase or evidence.phase
    if told is None:
        return own[0] if own else None
    following = PHASES[PHASES.index(told) + 1 :][:1]
    return following[0] if told not in own and following and following[0] in own else told


def _complained(evidence: Evidence, ended: bool | None) -> list[Candidate]:
    """The error, or where it is known to be over the last word, of a run that ended without an exception."""
    if evidence.finished is not None or evidence.complete is not None or evidence.closed is not None:
        return []
    if evidence.wait is not None and not ended:
        return []
    telling = [place for place in evidence.last if not (says_nothing(place.text) or hands_up(place.text))]
    telling = telling or list(evidence.last)
    recent = set(telling[-_COMPLAINT:])
    said = [place for place in evidence.complained if place in recent and place.offset >= evidence.progress]
    if said and not evidence.step:
        return [Candidate(1, said[0], 1, survived=False, phase=evidence.phase, about=tuple(telling[-_COMPLAINT - 2 :]))]
    if ended and telling:
        return [
            Candidate(1, telling[-1], 1, survived=False, phase=evidence.phase, about=tuple(telling[-_COMPLAINT - 2 :]))
        ]
    return []


def _stalls(evidence: Evidence, hits: Sequence[Hit], found: Sequence[Candidate]) -> list[Candidate]:
    """What a log that stands still says of why: a sign among its last lines, or its last words."""
    last = {hit.symptom.id: hit for hit in hits if _at_end(hit.last, evidence)}
    signs = [one for one in found if one.symptom is not None and one.symptom.kind == "stall" and one.symptom.id in last]
    wait = evidence.wait
    if wait is not None and wait.symptom.id not in {one.symptom.id for one in signs if one.symptom is not None}:
        phase = evidence.phase or (wait.symptom.phase[0] if wait.symptom.phase else None)
        signs.append(
            Candidate(1.8, wait.first, wait.count, survived=False, symptom=wait.symptom, phase=phase, about=wait.around)
        )
    return signs


def _at_end(place: Place, evidence: Evidence) -> bool:
    lines, _ = evidence.ends.get(place.file, (0, 0))
    return place.number > lines - _END


def _findings(found: Sequence[Candidate], fitting: Fitting) -> list[Finding]:
    """The root, then all that has a name, in the order of the log."""
    if not found:
        return []
    rest = sorted((one for one in found[1:] if one.symptom is not None), key=lambda one: one.place.offset)
    return [_finding(found[0], "root", fitting), *(_finding(one, "cascade", fitting) for one in rest)]


def _finding(one: Candidate, role: Role, fitting: Fitting) -> Finding:
    fixes = offers(one.symptom, fitting) if one.symptom is not None else ()
    return Finding(one.symptom, role, one.place, one.count, fixes)


def _courses(evidence: Evidence, hits: Sequence[Hit], fitting: Fitting, *, rooted: bool) -> list[Finding]:
    """A bad course is a root only where nothing has ended the run."""
    found = {hit.symptom.id: hit for hit in (*hits, *evidence.trends) if hit.symptom.kind == "course"}
    ordered = sorted(found.values(), key=lambda hit: (hit.symptom.part != "cause", hit.first.offset))
    return [_of_hit(hit, "cascade" if rooted or number else "root", fitting) for number, hit in enumerate(ordered)]


def _of_hit(hit: Hit, role: Role, fitting: Fitting) -> Finding:
    return Finding(hit.symptom, role, hit.first, hit.count, offers(hit.symptom, fitting))


def _telling(evidence: Evidence) -> tuple[Place, ...]:
    """The last lines that say where the run stands."""
    return tuple([place for place in evidence.last if not says_nothing(place.text)][-5:])
