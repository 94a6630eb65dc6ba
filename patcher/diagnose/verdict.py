"""Evidence → diagnosis: rank what may have ended the run, and judge the verdict.

`candidates` ranks symptoms and exceptions as root causes, and `diagnosis_of` makes the diagnosis of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.diagnosis import Diagnosis, Finding, Role, Verdict
from patcher.diagnose.evidence import Evidence, Hit, LogLine, Nature, Raised
from patcher.diagnose.exception_message import TELLING_WITH_RECORD
from patcher.diagnose.explaining import explain, whole_line
from patcher.diagnose.fixes import FixContext, fixes_for, versions_allow
from patcher.diagnose.frame import frame_of
from patcher.diagnose.known_issues import KnownIssue, known_issues
from patcher.diagnose.line_meaning import is_noise, is_passed_on
from patcher.logs.labels import strip_labels
from patcher.logs.milestones import PHASES, Phase
from patcher.records.symptoms import Part, Symptom

_KNOWN: Mapping[Part, float] = {"cause": 0, "end": 0, "effect": 2, "wrapper": 3}
_UNKNOWN: Mapping[Nature, float] = {"exception": 1, "printed": 1.1, "signal": 2.1, "effect": 2.2, "wrapper": 3.2}
"""An exception that no record covers is a more likely root than an effect, and a less likely one than a cause."""
# The ranks are an order and not measured; the labelled logs of `make bench-diagnosis` keep them in place. `follows` in
# a symptom record names the symptoms that it is a consequence of, as the end of an engine that ran out of memory.
_FOLLOWS, _FOLLOWS_TOO = 2.0, 0.5
"""The least rank of what follows from another symptom that was found; an effect that follows is behind other effects.
"""
_STALL = 1.7
"""The least rank of what makes a run stall: what ended the run in the end says more."""
_ASIDE = 1.6
"""The least rank of what a service process reports, such as a Ray daemon."""
_ENDED = 1.2
"""The rank of an end as seen from outside, `Killed`, where an earlier exception that no record covers says more."""
_STOOD = 300
"""Seconds in one phase after which a run counts as stalled, where its last lines are those of one that waits. A guess:
ten times what the configuration takes, and more than most phases before the first step take."""
_GENERIC = 0.5
"""Added for a record of many causes: it comes after a specific one, and before an exception that no record covers."""
_WARNED = 0.4
"""The least rank of what a program only warns of. The program mostly did without, so it is the cause only if nothing
else is."""
_SURVIVED = 1.5
"""Added where the run went on for a while."""
# A trainer that catches an exception goes on printing other lines; one that dies prints nothing of interest after it.
QUIET = 150
"""Lines after an exception that no record covers, with nothing else wrong in them, after which it counts as survived.
Set by hand."""
_WHILE = 40
"""Lines after a failure in which other ranks may still enter a phase. Set by hand: the ranks of a node report that they
enter it within some dozen lines."""
_SILENT = 2.1
"""The rank from which on a candidate shows only an end, and not its cause."""
_WRONG = re.compile(
    r"\b(?:errors?|fatal|fail(?:ed|ure)?|abort(?:ed|ing)?|cannot|could not|unable|invalid|denied|refused|expired)\b",
    re.IGNORECASE,
)
_MESSAGE = 12
"""Lines of an exception's message in which a symptom may match: the messages of CUDA and pydantic have up to ten."""


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


def candidates(evidence: Evidence, hits: Sequence[Hit]) -> list[Candidate]:
    """The failures that the run did not survive, the most likely root cause first.

    Args:
        hits: the symptoms that the versions allow.
    """
    failures = [hit for hit in hits if hit.symptom.kind in ("failure", "stall") and _counts(hit.start, evidence)]
    seen = {hit.symptom.id for hit in failures}
    known = evidence.hits
    unknown = [
        one
        for one in evidence.raised
        if not one.chained and not one.handled and _counts(one.place, evidence) and not _is_covered(one, known)
        if one.nature != "printed" or _at_end(one.last, evidence)  # Many a program prints one, and goes on.
    ]
    bad = _last_bad(evidence, failures, unknown)
    raised = min((one.place.offset for one in unknown if one.nature == "exception"), default=None)
    found = [_candidate_of_hit(hit, seen, evidence, raised) for hit in failures]
    found += [_candidate_of_exception(one, evidence, bad) for one in unknown]
    if found and min(one.rank for one in found) >= _FOLLOWS:
        found += [
            _candidate_of_exception(one, evidence, bad) for one in evidence.raised if _in_the_step_before(one, evidence)
        ]
    found.sort(key=lambda one: (one.rank, one.place.offset, -one.weight))
    return [*_announcement_before(found), *_stood_before(found, evidence), *found]


def _counts(place: LogLine, evidence: Evidence) -> bool:
    """Whether a line may have ended the run: no training went on after it, and the run had not come to its end before
    it."""
    if evidence.finished is not None and not _fails_at_end(place, evidence.finished, evidence):
        return False
    return place.offset >= evidence.progress and (evidence.complete is None or place.offset > evidence.complete.offset)


def _fails_at_end(place: LogLine, finished: LogLine, evidence: Evidence) -> bool:
    """Whether a failure counts in a log that says `Training completed`.

    verl's asynchronous trainers also print that where one of their parts has failed, some steps before the last one.
    After it, ending processes complain of each other; only an exit status shows that one of them failed.
    """
    if place.offset < finished.offset:
        return evidence.steps is not None and (evidence.step or 0) < evidence.steps
    return evidence.failed is not None and evidence.failed.offset > finished.offset


def _in_the_step_before(one: Raised, evidence: Evidence) -> bool:
    """Whether an exception may be the cause of effects: other ranks can make one more step before they notice it."""
    plain = one.nature == "exception" and not one.chained and not one.handled
    return (
        plain
        and evidence.progress_before <= one.place.offset < evidence.progress
        and not _is_covered(one, evidence.hits)
    )


def _candidate_of_hit(hit: Hit, seen: set[str], evidence: Evidence, first_raised: int | None) -> Candidate:
    """Rank a symptom. `first_raised`: the offset of the first exception that no record covers."""
    symptom, survived = hit.symptom, _phase_later(hit.start, evidence)
    rank = _KNOWN[symptom.part] + (_GENERIC if symptom.generic else 0)
    if symptom.part == "end" and first_raised is not None and first_raised < hit.start.offset:
        rank = _ENDED
    if seen & set(symptom.follows) - {symptom.id}:
        rank = max(rank, _FOLLOWS) + (_FOLLOWS_TOO if rank >= _FOLLOWS else 0)
    rank = max(rank, _STALL) if symptom.kind == "stall" else rank
    raised = _raised_at(hit.start, evidence)
    # `WARNING … Traceback …`: what tried it did without. Such a line may still be all that a run has left.
    rank = max(rank, _ASIDE) if hit.aside or (raised is not None and raised.handled) else rank
    if all(strip_labels(place.text).level in ("DEBUG", "INFO", "WARNING") for place in (hit.start, hit.last)):
        rank = max(rank, _WARNED)
    rank += _SURVIVED if survived and rank < _SURVIVED else 0
    return Candidate(rank, hit.start, hit.count, survived, symptom, hit.phase, hit.around, hit.weight, raised)


def _raised_at(place: LogLine, evidence: Evidence) -> Raised | None:
    """The exception on that line."""
    return next(
        (one for one in evidence.raised if (one.place.file, one.place.number) == (place.file, place.number)), None
    )


def _candidate_of_exception(one: Raised, evidence: Evidence, bad: Mapping[str, int]) -> Candidate:
    lines, _ = evidence.ends.get(one.last.file, (0, 0))
    quiet = lines - bad.get(one.last.file, lines) > QUIET
    survived = quiet or _phase_later(one.place, evidence)
    rank = _UNKNOWN[one.nature] + (_SURVIVED if survived else 0)
    shown = {(place.number, place.text): place for place in (*one.before, *one.frames, one.place)}
    about = tuple(sorted(shown.values(), key=lambda place: place.number))
    return Candidate(rank, one.place, one.count, survived, None, one.phase, about, raised=one)


def _announcement_before(found: Sequence[Candidate]) -> list[Candidate]:
    """The last line with an error before the first candidate, where all candidates show only that something ended."""
    if not found or (found[0].symptom is not None and found[0].symptom.part != "wrapper") or found[0].rank < _SILENT:
        return []
    first = min(found, key=lambda one: one.place.offset)
    for place in reversed([place for place in first.about if place.number < first.place.number]):
        stripped = strip_labels(place.text)
        if stripped.level in ("DEBUG", "INFO", "WARNING"):
            return []
        if _WRONG.search(stripped.text):
            return [Candidate(_SILENT, place, 1, survived=False, phase=first.phase, about=first.about)]
    return []


def _stood_before(found: Sequence[Candidate], evidence: Evidence) -> list[Candidate]:
    """What a stalled run was waiting for when something external ended it: `timeout`, a scheduler, a user."""
    if not found or found[0].symptom is None or found[0].symptom.part != "end":
        return []
    phase = found[0].phase or evidence.phase or next(reversed(list(evidence.spans)), None)
    if phase is None or phase == "loop" or evidence.spans.get(phase, 0) < _STOOD:
        return []  # The loop lasts as long as all steps: it does not tell how long the last one stood still.
    stood = evidence.stood
    if stood is None:
        # What it waits for may be told a while before the end: `ray status` is asked again and again.
        waits = [one for one in found if one.symptom is not None and one.symptom.kind == "stall" and not one.survived]
        return [replace(one, rank=0) for one in waits[:1]]
    if not _counts(stood.first, evidence):
        return []
    return [Candidate(0, stood.first, 1, survived=False, symptom=stood.symptom, phase=phase, about=stood.around)]


def _phase_later(place: LogLine, evidence: Evidence) -> bool:
    """Whether a phase began a good while after a line."""
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


def _is_covered(one: Raised, hits: Sequence[Hit]) -> bool:
    """Whether a symptom explains this exception: on its line, or as a cause anywhere in its traceback or message."""
    begin = one.frames[0].number if one.frames else one.place.number
    for hit in hits:
        for place in {hit.start, hit.last}:
            if place.file == one.place.file and place.number == one.place.number:
                return True
            within = begin <= place.number <= one.place.number + _MESSAGE
            if (
                within
                and hit.symptom.part == "cause"
                and hit.symptom.kind != "notice"  # It says nothing of why: `the process group was not closed`.
                and (place.file, place.speaker) == (one.place.file, one.place.speaker)
            ):
                return True
    return False


# A stall shows at the end of a log. `Waiting for …` in the middle, with steps after it, was only a wait.
_END = 40
"""Lines from the end in which a stall counts: as many as are kept of a log's end (`log_accumulator.LAST`)."""
_COMPLAINT = 4
"""Meaningful lines from the end in which an error without an exception ends a run: shells and srun add one or two more.
"""


def diagnosis_of(
    evidence: Evidence, context: FixContext, *, ended: bool | None = None, silent: bool | None = None
) -> Diagnosis:
    """Judge the evidence of a run.

    Args:
        ended: whether the run is known to be over; None where only the log can tell.
        silent: whether the log is known to have stopped growing for longer than the phase may take; None where that is
            not known.
    """
    hits = [
        hit
        for hit in evidence.hits
        if hit.count >= hit.symptom.times and versions_allow(hit.symptom.when, context.versions)
    ]
    found = candidates(evidence, hits)
    if not found:
        # The rest of a traceback may be on its way into a log that is still being written.
        cut = _candidates_of_cut_traceback(evidence) if ended or silent is not False else []
        found = cut or _candidates_of_complaints(evidence, ended)
    stalls = _stalls(evidence, hits, found, silent) if silent is not False and not ended else []
    verdict: Verdict
    if any(not one.survived and (one.symptom is None or one.symptom.kind == "failure") for one in found):
        verdict = "failed"
    elif evidence.finished is not None or evidence.complete is not None or evidence.closed is not None:
        verdict, found = "ok", []
    elif stalls or silent:
        verdict, found = "stalled", stalls
    else:
        verdict, found = "running", []
    findings = _findings(found, context)
    findings += _findings_of_metrics(evidence, hits, context, rooted=bool(findings))
    if verdict in ("failed", "stalled"):
        notices = [hit for hit in hits if hit.symptom.kind == "notice"]
        findings += [_finding_of_hit(hit, "cascade", context) for hit in notices]
    root = found[0] if found else None
    return Diagnosis(
        verdict,
        _phase(root, evidence),
        tuple(findings),
        root.about if root is not None and root.about else _telling_lines(evidence),
        step=evidence.step,
        steps=evidence.steps,
        step_lines=evidence.step_lines,
        spans=evidence.spans,
        versions=context.versions,
        lines=evidence.lines,
        size=evidence.size,
        blank=evidence.blank,
    )


def _phase(root: Candidate | None, evidence: Evidence) -> Phase | None:
    """The phase in which the run ended: the one that the log shows, or the next one, if the root cause belongs to
    that."""
    if root is None:
        return evidence.phase
    own = root.symptom.phase if root.symptom is not None else ()
    ended_in = root.phase or evidence.phase
    if ended_in is None:
        return own[0] if own else None
    following = PHASES[PHASES.index(ended_in) + 1 :][:1]
    return following[0] if ended_in not in own and following and following[0] in own else ended_in


_ANNOUNCED = 5
"""Lines before a traceback in which the error that it belongs to may be: `ERROR: the start failed: …`."""


def _candidates_of_cut_traceback(evidence: Evidence) -> list[Candidate]:
    """The code at which the log ends before the exception's own line; without a name there, the error announced above
    it."""
    one = evidence.unfinished
    if one is None or not _counts(one.place, evidence):
        return []
    begin = one.frames[0].number
    if not one.name:
        ahead = [place for place in evidence.complained if begin - _ANNOUNCED <= place.number < begin]
        if ahead:
            one = replace(one, place=ahead[0], message=(strip_labels(ahead[0].text).text,))
    return [_candidate_of_exception(one, evidence, {})]


def _candidates_of_complaints(evidence: Evidence, ended: bool | None) -> list[Candidate]:
    """The error, or the last words of a run that is known to be over, where no exception ended it."""
    if evidence.finished is not None or evidence.complete is not None or evidence.closed is not None:
        return []
    if evidence.wait is not None and not ended:
        return []
    telling = [place for place in evidence.last if not (is_noise(place.text) or is_passed_on(place.text))]
    telling = telling or list(evidence.last)
    recent = set(telling[-_COMPLAINT:])
    message = [place for place in evidence.complained if place in recent and place.offset >= evidence.progress]
    if message and not evidence.step:
        return [
            Candidate(1, message[0], 1, survived=False, phase=evidence.phase, about=tuple(telling[-_COMPLAINT - 2 :]))
        ]
    if ended and telling:
        return [
            Candidate(1, telling[-1], 1, survived=False, phase=evidence.phase, about=tuple(telling[-_COMPLAINT - 2 :]))
        ]
    return []


_MOVES = re.compile(r"\b[1-9]\d*/\d+ \[[\d:]+<[\d:]+, ")
"""The state of a progress bar that moved: `20/30 [00:04<00:02, 5.00it/s]`."""
_SAVED = re.compile(r"\bglobal_step_(?P<step>\d+)\b")
_PIECE = 40
"""A log with fewer lines than this that ends at a moving progress bar of the inference engine may be an excerpt, cut
off anywhere. Set by hand: a run prints more before it starts the engine."""


def _stalls(
    evidence: Evidence, hits: Sequence[Hit], found: Sequence[Candidate], silent: bool | None
) -> list[Candidate]:
    """Why a log stopped growing: a stall symptom among its last lines, or the wait that its last line shows."""
    last = {hit.symptom.id: hit for hit in hits if _at_end(hit.last, evidence)}
    signs = [one for one in found if one.symptom is not None and one.symptom.kind == "stall" and one.symptom.id in last]
    wait = evidence.wait
    if wait is not None and (saved := _SAVED.search(wait.last.text)) and int(saved["step"]) <= (evidence.step or 0):
        wait = None  # verl tells a step after it has written its checkpoint: `step:20 - …` ends that wait.
    if wait is not None and silent is None and wait.symptom.phase == ("rollout",):
        wait = wait if evidence.lines >= _PIECE or not _MOVES.search(wait.last.text) else None
    if wait is not None and wait.symptom.id not in {one.symptom.id for one in signs if one.symptom is not None}:
        phase = evidence.phase or (wait.symptom.phase[0] if wait.symptom.phase else None)
        signs.append(
            Candidate(1.8, wait.first, wait.count, survived=False, symptom=wait.symptom, phase=phase, about=wait.around)
        )
    return signs


def _at_end(place: LogLine, evidence: Evidence) -> bool:
    lines, _ = evidence.ends.get(place.file, (0, 0))
    return place.number > lines - _END


def _findings(found: Sequence[Candidate], context: FixContext) -> list[Finding]:
    """The root, then every other candidate that has a record, in the order of the log."""
    if not found:
        return []
    rest = sorted((one for one in found[1:] if one.symptom is not None), key=lambda one: one.place.offset)
    return [
        _finding_of_candidate(found[0], "root", context),
        *(_finding_of_candidate(one, "cascade", context) for one in rest),
    ]


def _finding_of_candidate(one: Candidate, role: Role, context: FixContext) -> Finding:
    fixes = fixes_for(one.symptom, context, one.place.text) if one.symptom is not None else ()
    unknown = one.symptom is None or one.symptom.generic
    below = [place.text for place in one.about if place.file == one.place.file and place.number > one.place.number]
    raised = one.raised
    complaint = one.symptom is None and (raised is None or (not raised.name and bool(raised.message)))
    explanation = explain(one.place, raised, context.versions, below, complaint) if role == "root" else None
    if explanation is not None and not unknown:
        # A record says what is known of it; the exception adds only who asks for what.
        telling = explanation.parts is not None and explanation.parts.matter in TELLING_WITH_RECORD
        explanation = replace(explanation, remedy="", search="") if telling else None
    threads = _threads(one) if role == "root" else ()
    return Finding(one.symptom, role, one.place, one.count, fixes, explanation, threads)


def _threads(one: Candidate) -> tuple[KnownIssue, ...]:
    """Public issues about a root cause, by the exception if there is one, else by the line."""
    raised = one.raised
    frames = [frame_of(place.text) for place in raised.frames] if raised is not None else []
    line = raised.message[0] if raised is not None and raised.message else one.place.text
    return known_issues(whole_line(line, raised), [frame.path for frame in frames if frame is not None])


def _findings_of_metrics(
    evidence: Evidence, hits: Sequence[Hit], context: FixContext, *, rooted: bool
) -> list[Finding]:
    """Findings from trends of metrics. One is the root only where nothing else ended the run."""
    found = {hit.symptom.id: hit for hit in (*hits, *evidence.trends) if hit.symptom.kind == "course"}
    ordered = sorted(found.values(), key=lambda hit: (hit.symptom.part != "cause", hit.first.offset))
    return [
        _finding_of_hit(hit, "cascade" if rooted or number else "root", context) for number, hit in enumerate(ordered)
    ]


def _finding_of_hit(hit: Hit, role: Role, context: FixContext) -> Finding:
    return Finding(hit.symptom, role, hit.first, hit.count, fixes_for(hit.symptom, context, hit.first.text))


def _telling_lines(evidence: Evidence) -> tuple[LogLine, ...]:
    """The last lines that say where the run stands."""
    return tuple([place for place in evidence.last if not is_noise(place.text)][-5:])
