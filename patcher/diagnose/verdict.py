"""Judge the evidence of a run: its verdict, the phase in which it ended, and the findings with their fixes.

`root_cause` ranks what may be the root cause; `diagnosis_of` makes the diagnosis from the ranked candidates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from patcher.diagnose.bar_pace import advances
from patcher.diagnose.collective_timeouts import TIMED_OUT, with_ranks
from patcher.diagnose.complaints import complaints, is_native_error, native_cause, native_reason
from patcher.diagnose.conflicts import conflict_in
from patcher.diagnose.cut_tracebacks import announced, told_failure
from patcher.diagnose.diagnosis import Diagnosis, Explanation, Finding, Offer, Role, Verdict
from patcher.diagnose.endings import is_crash
from patcher.diagnose.evidence import Call, Evidence, Hit, LogLine, Raised
from patcher.diagnose.exception_message import TELLING_WITH_RECORD, MessageParts
from patcher.diagnose.explaining import explain, whole_line
from patcher.diagnose.fixes import LAST_FRAME, FixContext, fixes_for, versions_allow
from patcher.diagnose.frame import Frame, frame_of
from patcher.diagnose.known_issues import KnownIssue, known_issues
from patcher.diagnose.line_meaning import is_bar, is_noise, is_of_another_rank, is_passed_on
from patcher.diagnose.matched_line import YEAR
from patcher.diagnose.message_words import points_elsewhere
from patcher.diagnose.own_module import (
    EVERYWHERE,
    OWN_MODULE,
    folder_above,
    installs,
    is_of_ones_own,
    own_folder,
    unpickled_module,
    without_installs,
)
from patcher.diagnose.parties import party
from patcher.diagnose.ranking import Candidate, candidate_of_exception, candidate_of_hit
from patcher.diagnose.root_cause import candidates, is_at_end, may_have_ended_run
from patcher.diagnose.said_before import ran_short
from patcher.i18n import phrase
from patcher.logs.labels import strip_labels, time_of
from patcher.logs.milestones import PHASES, Phase
from patcher.records.symptoms import Symptom

_COMPLAINT = 4
"""Meaningful lines from the end in which an error without an exception ends a run: shells and srun add one or two more.
"""
_PLAIN_ERROR, _WAIT = 1.0, 1.8
"""The ranks of an error without an exception, as of an exception that no record covers; and of a wait that the last
line shows, behind that of a stall symptom."""


def diagnosis_of(
    evidence: Evidence,
    context: FixContext,
    *,
    ended: bool | None = None,
    silent: bool | None = None,
    last_words: bool = True,
) -> Diagnosis:
    """Judge the evidence of a run.

    Args:
        ended: whether the run is known to be over; None where only the log can tell.
        silent: whether the log is known to have stopped growing for longer than the phase may take; None where that is
            not known.
        last_words: whether the last words of a run that is over may tell why. They do not where a signal
            ended it, or where nobody knows how it ended (`last_words_tell`).
    """
    other = "other" in evidence.origins and "verl" not in evidence.origins
    sglang = "sglang" in evidence.engines and "vllm" not in evidence.engines
    context = replace(context, foreign=other, unsigned=not evidence.origins, sglang=sglang)
    evidence = replace(evidence, hits=without_installs(evidence.hits, evidence))
    hits = [
        hit
        for hit in evidence.hits
        if hit.count >= hit.symptom.times and versions_allow(hit.symptom.when, context.versions)
    ]
    found = candidates(evidence, hits)
    if all(one.survived for one in found):
        # In a log that is still being written, the rest of a traceback may be to come.
        cut = _candidates_of_cut_traceback(evidence) if ended or silent is not False else []
        # A warning above the traceback in which the log ends was not survived.
        found = [replace(one, survived=False) for one in found if cut and one.place in evidence.last] or cut or found
    if not found:
        found = _candidates_of_complaints(evidence, ended, last_words=last_words)
    stalls = _stalls(evidence, hits, found, silent) if silent is not False and not ended else []
    verdict: Verdict
    if any(not one.survived and (one.symptom is None or one.symptom.kind == "failure") for one in found):
        verdict = "failed"
    elif evidence.ended_well:
        verdict, found = "ok", []
    elif stalls or silent:
        verdict, found = "stalled", stalls
    else:
        verdict, found = "running", []
    findings = _findings(found, context, evidence)
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
        step=evidence.step if evidence.step is not None else evidence.counted,
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
    if one is None or not may_have_ended_run(one.place, evidence):
        return []
    begin = one.frames[0].number
    if not one.name:
        if (failure := _told_above(begin, evidence)) is not None:
            one = replace(one, place=failure.place, last=failure.place, message=failure.message)
            return [candidate_of_exception(one, evidence, {})]
        told_here = [place for place in evidence.complained if not points_elsewhere(place.text)]
        ahead = [place for place in told_here if begin - _ANNOUNCED <= place.number < begin]
        told = announced(evidence.last, begin)
        known = [hit for hit in evidence.hits if ahead and hit.start == ahead[0] and hit.symptom.kind == "failure"]
        if known:
            return [replace(candidate_of_hit(known[0], set(), evidence, None), survived=False)]
        if ahead:
            one = replace(one, place=ahead[0], message=(strip_labels(ahead[0].text).text,))
        elif told is not None:
            one = replace(one, place=told[0], message=(told[1],))
    return [candidate_of_exception(one, evidence, {})]


def _told_above(number: int, evidence: Evidence) -> Raised | None:
    """The failure that the program tells by an exception's message shortly before a line."""
    above = [place for place in evidence.last if number - _ANNOUNCED <= place.number < number]
    # `WARNING … failed to load a plugin: No module named 'x'` is of what the program does without.
    return told_failure([one for one in above if strip_labels(one.text).level != "WARNING"])


_STEP_LINE = re.compile(r"\bstep:\d+ - ")


def _candidates_of_complaints(evidence: Evidence, ended: bool | None, *, last_words: bool = True) -> list[Candidate]:
    """The error, or the last words of a run that is known to be over, where no exception ended it.

    The metrics of a step, `step:4 - actor/loss:0.1 - …`, are no last words: that step went well.
    """
    if evidence.ended_well:
        return []
    if evidence.wait is not None and not ended:
        return []
    telling = [place for place in evidence.last if not (is_noise(place.text) or is_passed_on(place.text))]
    telling = telling or list(evidence.last)
    recent = set(telling[-_COMPLAINT:])
    complained = [place for place in evidence.complained if place.offset >= evidence.progress]
    message = sorted((place for place in complained if place in recent), key=lambda one: points_elsewhere(one.text))
    if (native := native_cause(complained)) is not None:
        place = native
    elif message and not evidence.step:
        if (failure := _told_above(message[0].number, evidence)) is not None:
            return [candidate_of_exception(replace(failure, nature="exception"), evidence, {})]
        place = message[0]
    elif ended and last_words and telling and not _STEP_LINE.search(telling[-1].text):
        place = telling[-1]
    else:
        return []
    about = tuple(telling[-_COMPLAINT - 2 :])
    if place not in about:
        about = tuple([one for one in telling if one.number >= place.number][: _COMPLAINT + 2])
    return [Candidate(_PLAIN_ERROR, place, 1, survived=False, phase=evidence.phase, about=about)]


_MOVES = re.compile(r"\b[1-9]\d*/\d+ \[[\d:]+<[\d:]+, ")
"""The state of a progress bar that moved: `20/30 [00:04<00:02, 5.00it/s]`."""
_BYTES = re.compile(r"\b(?!0\.0)\d[\d.]*[kMGT]?/[\d.]+[kMGT]?B? \[00:[0-5]\d<[\d:]+, +(?!0\.00)\d[\d.]*[kMG]?i?B/s\]")
"""The state of a download in its first minute: `34.7M/892M [00:04<01:57, 7.29MB/s]`."""
_SAVED = re.compile(r"\bglobal_step_(?P<step>\d+)\b")
_PIECE = 40
"""A log with fewer lines than this that ends at a moving progress bar of the inference engine may be an excerpt, cut
off anywhere. Set by hand: a run prints more before it starts the engine."""

_OF_EXCERPTS: tuple[tuple[Phase, ...], ...] = (("rollout",), ("loop",))
"""The phases of waits at which an excerpt may only happen to end."""


def _stalls(
    evidence: Evidence, hits: Sequence[Hit], found: Sequence[Candidate], silent: bool | None
) -> list[Candidate]:
    """Why a log stopped growing: a stall symptom among its last lines, or the wait that its last line shows."""
    last = {hit.symptom.id: hit for hit in hits if is_at_end(hit.last, evidence)}
    signs = [one for one in found if one.symptom is not None and one.symptom.kind == "stall" and one.symptom.id in last]
    wait = evidence.wait
    if wait is not None and (saved := _SAVED.search(wait.last.text)) and int(saved["step"]) <= (evidence.step or 0):
        wait = None  # verl prints `step:20 - …` after the checkpoint of step 20 is written, so that wait is over.
    if wait is not None and silent is None and evidence.last and _BYTES.search(evidence.last[-1].text):
        wait = None  # A download that was at work a moment after it began.
    if wait is not None and silent is None:
        # A bar that moved, and with it the line of a checkpoint: `20/30 [31:21<13:11, 79.1s/it]Saving checkpoint …`.
        piece = evidence.lines < _PIECE and wait.symptom.phase in _OF_EXCERPTS
        moved = piece and _MOVES.search(wait.last.text) is not None
        if moved or advances(wait.last, evidence.last) or _is_cut_in_flow(wait.last, evidence):
            wait = None
    if wait is not None and wait.symptom.id not in {one.symptom.id for one in signs if one.symptom is not None}:
        phase = evidence.phase or (wait.symptom.phase[0] if wait.symptom.phase else None)
        signs.append(
            Candidate(
                _WAIT, wait.first, wait.count, survived=False, symptom=wait.symptom, phase=phase, about=wait.around
            )
        )
    return signs


_TIMED, _FLOW = 4, 15.0
"""Lines with a time, the last one among them, that show how fast a log flows; and seconds between the last two of them
within which it did not stand still. Set by hand: an engine prints its start-up lines every few seconds."""
_OF_ENGINES: frozenset[Phase] = frozenset(("config", "rollout"))
"""Phases that the log of an inference engine alone shows too."""
_DIGITS = re.compile(r"\d+")


def _is_cut_in_flow(last: LogLine, evidence: Evidence) -> bool:
    """Whether a short piece of an engine's log ends at a line that only happens to be its last: its times show no
    pause, and it does not say the same again, as what waits does."""
    trains = evidence.step is not None or not set(evidence.begun) <= _OF_ENGINES
    if trains or evidence.origins or evidence.lines >= _PIECE:
        return False
    same = [one for one in evidence.last if _DIGITS.sub("0", one.text) == _DIGITS.sub("0", last.text)]
    times = [at for one in evidence.last if (at := time_of(one.text, YEAR)) is not None]
    if len(same) > 1 or len(times) < _TIMED or time_of(last.text, YEAR) is None:
        return False
    return 0 <= times[-1] - times[-2] <= _FLOW


def _calls_behind(evidence: Evidence, place: LogLine) -> Sequence[Call]:
    """The frames of the traceback in which the log ends, where nothing tells its exception, and where it may be that of
    `place`."""
    one = evidence.unfinished
    if one is None or one.name or one.message or is_of_another_rank(place.text, evidence.last[-1].text):
        return ()
    return one.calls


def _findings(found: Sequence[Candidate], context: FixContext, evidence: Evidence) -> list[Finding]:
    """The root, then every other candidate that has a record, in the order of the log."""
    if not found:
        return []
    others = [one for one in found[1:] if one.symptom is not None and not _is_same(one.symptom, one, found[0])]
    rest = sorted(others, key=lambda one: one.place.offset)
    root = _finding_of_candidate(found[0], "root", context, _calls_behind(evidence, found[0].place))
    root = replace(root, explanation=_with_neighbours(root, found[0], evidence))
    if root.id == TIMED_OUT:
        matched = (hit.matched for hit in evidence.hits if hit.symptom.id == TIMED_OUT)
        root = with_ranks(root, [line for lines in matched for line in lines], evidence.last)
    return [
        root,
        *(_finding_of_candidate(one, "cascade", context) for one in rest),
    ]


def _is_same(symptom: Symptom, one: Candidate, root: Candidate) -> bool:
    """Whether a symptom only says of the root's line less than the root's own, which it follows from."""
    is_line = (one.place.file, one.place.number) == (root.place.file, root.place.number)
    return is_line and root.symptom is not None and root.symptom.id in symptom.follows


def _finding_of_candidate(one: Candidate, role: Role, context: FixContext, behind: Sequence[Call] = ()) -> Finding:
    fixes = _fixes(one, context)
    unknown = one.symptom is None or one.symptom.generic or one.symptom.part == "wrapper"
    below = [place.text for place in one.about if place.file == one.place.file and place.number > one.place.number]
    raised = one.raised
    complaint = one.symptom is None and (raised is None or (not raised.name and bool(raised.message)))
    behind = behind if raised is not None and not complaint else ()
    explanation = explain(one.place, raised, context.versions, below, complaint, behind) if role == "root" else None
    if explanation is not None and not unknown:
        # The record explains it; the exception adds only who asks for what.
        telling = explanation.parts is not None and explanation.parts.matter in TELLING_WITH_RECORD
        explanation = replace(explanation, remedy="", search="") if telling else None
    # What only tells that something else has failed has no threads of its own.
    follows = one.symptom is not None and one.symptom.part == "wrapper"
    threads = _threads(one) if role == "root" and not follows else ()
    return Finding(one.symptom, role, one.place, one.count, fixes, explanation, threads)


def _fixes(one: Candidate, context: FixContext) -> tuple[Offer, ...]:
    """The fixes of the record; for a module that may be the user's own also how to bring it to every node."""
    if one.symptom is None:
        return (OWN_MODULE, EVERYWHERE) if one.raised is not None and unpickled_module(one.raised) else ()
    fixes = fixes_for(one.symptom, context, one.place.text, (*_case(one), one.place.text))
    missing = _MISSING.search(one.place.text) if installs(one.symptom) else None
    if missing is not None and one.raised is not None and (above := folder_above(missing["module"], one.raised.calls)):
        return (own_folder(above), *fixes)
    if missing is not None and "pid=" in one.place.speaker and is_of_ones_own(missing["module"]):
        return (*fixes[:1], OWN_MODULE, *fixes[1:])
    return fixes


def _case(one: Candidate) -> Sequence[str]:
    """What shows the case of a failure: its frames with their code, below a line that says of which package the last
    one is, or that it is the user's own; else the lines around it."""
    calls = one.raised.calls if one.raised is not None else ()
    frames = [frame for call in calls if (frame := frame_of(call.frame)) is not None]
    if not frames:
        return [place.text for place in one.about]
    last = next((frame for frame in reversed(frames) if frame.package or not frame.installed), frames[-1])
    whose = "own" if party(last) in ("", "verl") else party(last)
    said = one.raised.message if one.raised is not None else ()
    return [f"{LAST_FRAME}{whose} {last.path}", *(f"{call.frame}\n{call.code}" for call in calls), *said]


_MISSING = re.compile(r"No module named '(?P<module>\w+)'")
_MOST = 160
"""Characters of a line that are quoted within a sentence. Set by hand."""


def _with_neighbours(root: Finding, one: Candidate, evidence: Evidence) -> Explanation | None:
    """The explanation of the root, completed by lines around it: of a crash what was done last before it, and of a call
    on Ascend why it failed."""
    explained, place = root.explanation, root.place
    if is_crash(place.text) and (explained is None or explained.parts is None):
        at = _crashed_in(place, (*one.about, *evidence.last))
        if at is not None:
            sentence = phrase("Python was in {place} at that moment", place=at.shown)
            return Explanation(sentence, MessageParts("around", found=at.shown), at)
        before = _last_before(place, (*one.about, *evidence.last))
        if before is None:
            return explained
        label = strip_labels(before.text)
        bare = label.text if label.level or re.search(r"\d", label.label) else before.text
        said = " ".join(bare.split())[:_MOST]
        sentence = phrase("the last that was said before it, in line {line}: {words}", line=before.number, words=said)
        parts = MessageParts("around", found=said)
        return Explanation(sentence, parts) if explained is None else replace(explained, sentence=sentence, parts=parts)
    if one.symptom is not None and one.symptom.part == "wrapper" and (explained is None or explained.parts is None):
        short = ran_short(place, (*one.about, *evidence.last))
        if short is not None:
            text = "the last that was said before it, in line {line}: {words}"
            sentence = phrase(text, line=short[0], words=short[1])
            return Explanation(sentence, MessageParts("around", found=short[1]))
    if (words := _thrown(one)) and explained is None:
        sentence = phrase("{who} says: {words}", who=phrase("the program"), words=words)
        return Explanation(sentence, MessageParts("around", found=words))
    if "NCCL error in" in place.text and (warned := _warned_by_nccl(one, evidence)) is not None:
        words = warned.message[0]
        sentence = phrase("before that, line {line} says: {words}", line=warned.place.number, words=words)
        return Explanation(sentence, MessageParts("around", found=words))
    if _CONFLICT.search(place.text):
        listed = {line.number: line.text for line in (*one.about, *evidence.last) if line.file == place.file}
        told = conflict_in(text for number, text in sorted(listed.items()) if number >= place.number)
        return Explanation(told, MessageParts("around")) if told is not None else explained
    if explained is None and _OF_NPU.search(place.text):
        reasons = [native_reason(line.text) for line in (*one.about, *evidence.last) if line.number > place.number]
        if words := next(filter(None, reasons), ""):
            sentence = phrase("{who} says: {words}", who="CANN", words=words)
            return Explanation(sentence, MessageParts("around", found=words))
    if explained is not None and not explained.remedy:
        below = [line for line in evidence.last if line.file == place.file and line.number > place.number]
        if any(is_native_error(line.text) for line in below):
            return replace(explained, remedy=next(filter(None, (native_reason(line.text) for line in below)), ""))
    return explained


_OF_NPU = re.compile(r"\bNPU function error\b|\baclnn\w+ failed\b")
_THROWN = re.compile(r"terminate called after throwing an instance of '(?P<name>[^']{1,120})'")
_WHAT = re.compile(r"\s*what\(\): +(?P<words>\S.*)")


def _thrown(one: Candidate) -> str:
    """The exception of C++ that nothing caught, with its message; "" for any other candidate."""
    thrown = _THROWN.search(one.place.text)
    below = [place.text for place in one.about if place.number > one.place.number] if thrown is not None else []
    said = next((found["words"] for text in below if (found := _WHAT.match(strip_labels(text).text))), "")
    return f"{thrown['name']}: {said}"[:_MOST] if thrown is not None and said else ""


def _warned_by_nccl(one: Candidate, evidence: Evidence) -> Raised | None:
    """What NCCL warned of before its error, where the error itself does not say it: the first warning that the run did
    not survive."""
    said = " ".join((one.place.text, *(one.raised.message if one.raised is not None else ())))
    for raised in evidence.raised:
        words = raised.message[0].removeprefix("NCCL WARN ") if raised.nature == "told" else ""
        early = raised.place.offset < one.place.offset and may_have_ended_run(raised.place, evidence)
        if words and words != raised.message[0] and early:
            return raised if words not in said else None
    return None


_CONFLICT = re.compile(
    r"versions have conflicting dependencies|No solution found when resolving|requirements are unsatisfiable"
    r"|[Bb]ecause .*(?:no version of|was not found in the package registry)"
)
_STACK = re.compile(r"(?:Current thread\b.*|Stack) \(most recent call first\):$")
_NATIVE_FRAME = re.compile(r"@ +0x[0-9a-f]+ ")
_IN_STACK = re.compile(r'(File "[^"]+", line \d+) in ')


def _crashed_in(place: LogLine, lines: Sequence[LogLine]) -> Frame | None:
    """The innermost frame of the stack that faulthandler prints below a crash, the first one that it names."""
    below = {line.number: line.text for line in lines if line.file == place.file and line.number >= place.number}
    texts = iter([text for _, text in sorted(below.items())])
    if any(_STACK.search(text) for text in texts):
        # `File "/venv/vllm/worker.py", line 40 in apply`, where a traceback has a comma before `in`.
        frame = _IN_STACK.search(next(texts, ""))
        return frame_of(f"{frame[1]}, in") if frame is not None else None
    return None


def _last_before(place: LogLine, lines: Sequence[LogLine]) -> LogLine | None:
    """The last line before a crash that says what was done, and reports no error itself."""
    before = {line.number: line for line in lines if line.file == place.file and line.number < place.number}
    for _, line in sorted(before.items(), reverse=True):
        silent = is_noise(line.text) and not is_bar(line.text)
        inner = line.text[:1] in " \t" and not is_bar(line.text)
        inner = inner or _NATIVE_FRAME.search(line.text) is not None
        if not (silent or inner or is_crash(line.text) or complaints((line,))):
            return line
    return None


def _threads(one: Candidate) -> tuple[KnownIssue, ...]:
    """Public issues about a root cause, by the exception if there is one, else by the line."""
    raised = one.raised
    frames = [frame_of(place.text) for place in raised.frames] if raised is not None else []
    line = raised.message[0] if raised is not None and raised.message else one.place.text
    below = raised.message[1:] if raised is not None else ()
    return known_issues(whole_line(line, raised), [frame.path for frame in frames if frame is not None], below)


def _findings_of_metrics(
    evidence: Evidence, hits: Sequence[Hit], context: FixContext, *, rooted: bool
) -> list[Finding]:
    """Findings from trends of metrics. One is the root only where nothing else ended the run.

    What a line said of a metric counts until two signs of progress came after it: `'loss': nan` of one bad step.
    """
    said = [hit for hit in hits if not (hit.symptom.trends and hit.last.offset < evidence.progress_before)]
    courses = [hit for hit in (*said, *evidence.trends) if hit.symptom.kind == "course"]
    found = {hit.symptom.id: hit for hit in courses if not _is_passed(hit.symptom, evidence)}
    ordered = sorted(found.values(), key=lambda hit: (hit.symptom.part != "cause", hit.first.offset))
    return [
        _finding_of_hit(hit, "cascade" if rooted or number else "root", context) for number, hit in enumerate(ordered)
    ]


def _is_passed(symptom: Symptom, evidence: Evidence) -> bool:
    """Whether the run has left the phases before its loop that a finding is about: how long the weights took to load
    matters to nobody once they are there."""
    if not symptom.phase or "loop" in symptom.phase:
        return False
    last = max(map(PHASES.index, symptom.phase))
    return evidence.ended_well or (evidence.phase is not None and PHASES.index(evidence.phase) > last)


def _finding_of_hit(hit: Hit, role: Role, context: FixContext) -> Finding:
    return Finding(hit.symptom, role, hit.first, hit.count, fixes_for(hit.symptom, context, hit.first.text))


def _telling_lines(evidence: Evidence) -> tuple[LogLine, ...]:
    """The last lines that say where the run stands."""
    return tuple([place for place in evidence.last if not is_noise(place.text)][-5:])
