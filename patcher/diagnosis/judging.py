"""Evidence -> what it comes to: the verdict, the root, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping

from patcher.diagnosis.evidence import Evidence, Hit, Raised
from patcher.diagnosis.fixing import Fitting, fits, offers
from patcher.diagnosis.model import Diagnosis, Finding, Verdict
from patcher.records.symptoms import Part

_RANK: Mapping[Part, int] = {"cause": 0, "effect": 2, "wrapper": 3}
_UNKNOWN = 1
"""An exception that no record covers is a better root than an effect, and a worse one than a cause."""


def judge(evidence: Evidence, fitting: Fitting, *, ended: bool | None = None, silent: bool | None = None) -> Diagnosis:
    """What a log comes to.

    Args:
        ended: whether the run is known to be over; None where only the log can tell.
        silent: whether it is known to have said nothing for longer than its phase may; None where that is not known.
    """
    failures = [hit for hit in evidence.hits if hit.symptom.kind == "failure" and _counts(hit, evidence)]
    failures = [hit for hit in failures if fits(hit.symptom.when, fitting.versions)]
    unknown = [one for one in evidence.raised if not one.wrapper and not _covered(one, failures)]
    unknown = [one for one in unknown if evidence.finished is None and one.place.offset >= evidence.progress]
    findings: list[Finding] = []
    verdict: Verdict = "running"
    if failures or unknown:
        findings = _ordered(failures, unknown, fitting)
        verdict = "failed"
    elif evidence.finished is not None:
        verdict = "ok"
    elif evidence.wait is not None and silent is not False:
        hit = evidence.wait
        findings = [Finding(hit.symptom, "root", hit.first, hit.count, offers(hit.symptom, fitting))]
        verdict = "stalled"
    elif silent:
        verdict = "stalled"
    findings += [Finding(hit.symptom, "root", hit.first, hit.count, offers(hit.symptom, fitting)) for hit in evidence.trends]
    told = dict(step=evidence.step, steps=evidence.steps, spans=evidence.spans, versions=evidence.versions)
    return Diagnosis(verdict, evidence.phase, tuple(findings), evidence.last[-5:], lines=evidence.lines, size=evidence.size, **told)  # type: ignore[arg-type]


def _counts(hit: Hit, evidence: Evidence) -> bool:
    """Whether the run did not simply go on afterwards."""
    return evidence.finished is None and hit.last.offset >= evidence.progress


def _covered(raised: Raised, failures: list[Hit]) -> bool:
    return any(raised.place.number in (hit.first.number, hit.last.number) for hit in failures)


def _ordered(failures: list[Hit], unknown: list[Raised], fitting: Fitting) -> list[Finding]:
    seen = {hit.symptom.id for hit in failures}

    def rank(hit: Hit) -> int:
        return 2 if seen & set(hit.symptom.follows) else _RANK[hit.symptom.part]

    candidates = [(rank(hit), hit.first.offset, hit.symptom, hit.first, hit.count) for hit in failures]
    candidates += [(_UNKNOWN, one.place.offset, None, one.place, 1) for one in unknown]
    root = min(candidates, key=lambda one: one[:2])
    rest = sorted((one for one in candidates if one is not root and one[2] is not None), key=lambda one: one[1])
    return [
        Finding(symptom, "root" if number == 0 else "cascade", place, count, offers(symptom, fitting) if symptom else ())
        for number, (_, _, symptom, place, count) in enumerate([root, *rest])
    ]
