"""Rank what may be the root cause of a failure: symptoms, exceptions, and ends of processes.

Causes come before exceptions that no record covers, those before effects, and effects before what only carries another
exception. What the run survived does not count, and neither does what comes after its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from patcher.diagnose.code_message import is_raised_again
from patcher.diagnose.evidence import Call, Evidence, Hit, LogLine, Raised
from patcher.diagnose.failed_code import literal_raised
from patcher.diagnose.frame import is_of_main
from patcher.diagnose.line_meaning import ALONE, is_of_shell, nature, tells_of_process
from patcher.diagnose.message_words import points_elsewhere
from patcher.diagnose.ranking import (
    EARLIER,
    FOLLOWS,
    KNOWN,
    UNKNOWN,
    WHILE,
    Candidate,
    candidate_of_exception,
    candidate_of_hit,
    phase_later,
    raised_at,
)
from patcher.diagnose.told_errors import is_of_installer, may_lack
from patcher.logs.labels import strip_labels

_SHELL = 1.95
"""The least rank of an error of the shell before the job, as `conda: command not found`: what the job itself says tells
more, and a status alone tells less."""
_STALLED = 300
"""Seconds in one phase after which a run counts as stalled, where its last lines are those of one that waits. A guess:
ten times what the configuration takes, and more than most phases before the first step take."""
_SILENT = 2.1
"""The rank from which on a candidate shows only an end, and not its cause."""
_WRONG = re.compile(
    r"\b(?:errors?|fatal|fail(?:ed|ure)?|abort(?:ed|ing)?|cannot|could not|unable|invalid|denied|refused|expired)\b",
    re.IGNORECASE,
)
_OF_CODE = re.compile(r'\s{4}|\s*raise [A-Z][\w.]*\(|\s*File "')
"""A line of a traceback: `raise RuntimeError("The engine failed. "` is code, and nobody's message."""
_MESSAGE = 12
"""Lines of an exception's message in which a symptom may match: the messages of CUDA and pydantic have up to ten."""
# A stall shows at the end of a log. `Waiting for …` in the middle, with steps after it, was only a wait.
_END = 40
"""Lines from the end in which a stall counts: as many as `log_accumulator` keeps (`LAST_LINES`)."""


def candidates(evidence: Evidence, hits: Sequence[Hit]) -> list[Candidate]:
    """The failures that the run did not survive, the most likely root cause first.

    Args:
        hits: the symptoms that the versions allow.
    """
    failures = [
        hit for hit in hits if hit.symptom.kind in ("failure", "stall") and may_have_ended_run(hit.start, evidence)
    ]
    seen = {hit.symptom.id for hit in failures}
    known = evidence.hits
    unknown = [
        one
        for one in evidence.raised
        if not one.chained
        and not one.handled
        and may_have_ended_run(one.place, evidence)
        and not _is_covered(one, known)
        if one.nature != "printed" or is_at_end(one.last, evidence)  # Many programs print one, and go on.
    ]
    told = [candidate_of_exception(one, evidence, {}) for one in unknown if one.nature == "told"]
    unknown = [one for one in unknown if one.nature != "told"]
    bad = _last_bad(evidence, failures, unknown)
    plain = [one for one in unknown if one.nature == "exception" and not is_of_shell(one.place.text)]
    raised = min((one.place.offset for one in plain), default=None)
    # An exception that a record of many causes covers is still nearer to the root than an end behind it.
    generic = [hit.start.offset for hit in failures if _is_generic_exception(hit, evidence)]
    raised = min((*generic, *(() if raised is None else (raised,))), default=None)
    found = [candidate_of_hit(hit, seen, evidence, raised) for hit in failures]
    found += [candidate_of_exception(one, evidence, bad) for one in unknown]
    found = _without_carried(found)
    if found and min(one.rank for one in found) >= FOLLOWS:
        found += [
            candidate_of_exception(one, evidence, bad) for one in evidence.raised if _in_the_step_before(one, evidence)
        ]
    found = _with_told(found, told)
    found = _with_inner_errors(_without_corrected(_without_shell(found, evidence)), evidence)
    found = _of_last_start(found, evidence.started)
    found.sort(key=lambda one: (one.rank, one.place.offset, -one.weight))
    return [
        *_raised_above(found),
        *_passed_on_before(found),
        *_announcement_before(found),
        *_waits_before_end(found, evidence),
        *found,
    ]


def _without_carried(found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, where an exception that its innermost frame only raises again (`raise result`) comes behind the
    same one with the frames of the process that it is from."""

    def words(one: Candidate) -> str:
        return strip_labels(one.raised.message[0]).text if one.raised is not None and one.raised.message else ""

    raised = [one for one in found if one.raised is not None and one.raised.calls]
    said = {words(one) for one in raised if one.raised is not None and not is_raised_again(one.raised.calls)}

    def is_carried(one: Candidate) -> bool:
        return one.raised is not None and is_raised_again(one.raised.calls) and words(one) in said

    return [replace(one, rank=one.rank + EARLIER) if is_carried(one) else one for one in found]


def _with_told(found: Sequence[Candidate], told: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a failure with what was told before it: it comes before ends and effects only. Of an installer
    it also comes before the module that is missing because of it."""
    if all(one.survived or (one.symptom is not None and one.symptom.kind == "stall") for one in found):
        return list(found)  # What is only told ends no run.
    first = min(found, key=lambda one: (one.rank, one.place.offset))
    missing = _LACKED.match(strip_labels(first.place.text).text)

    def leads_to_it(one: Candidate) -> bool:
        early = one.place.offset < first.place.offset and not is_of_shell(one.place.text)
        return missing is not None and early and may_lack(one.place.text, missing["module"])

    earlier = [one for one in told if one.place.offset < first.place.offset]
    return [replace(one, rank=first.rank - EARLIER) if leads_to_it(one) else one for one in (*found, *earlier)]


_LACKED = re.compile(r"(?:\S.*)?No module named '?(?P<module>\w+)'?$")
"""A missing module of the job itself: pip quotes that of a build with indentation."""


def _wraps(place: LogLine, begin: LogLine) -> bool:
    """Whether a line that only says that another process failed is shortly above that process's errors."""
    near = place.file == begin.file and 0 <= begin.number - place.number <= _ABOVE
    return near and tells_of_process(place.text)


_ABOVE, _WITHIN = 40, 300
"""Lines above another process's errors in which their wrapper is searched, and lines of these errors. Set by hand."""


def _with_inner_errors(found: Sequence[Candidate], evidence: Evidence) -> list[Candidate]:
    """The candidates, where one that only says that another process failed comes behind the errors of that process,
    if the log shows them: `CalledProcessError: …`, `# Subprocess stderr:`, a traceback. Of these the last says most."""
    ranks = {id(one): one.rank for one in found}
    for begin in evidence.inner:
        near = [one for one in found if one.place.file == begin.file]
        wrapping = {hit.symptom.id for hit in evidence.hits if _wraps(hit.last, begin)}
        outer = [
            one
            for one in near
            if _wraps(one.place, begin)
            or (one.symptom is not None and one.symptom.id in wrapping and one.place.number <= begin.number)
        ]
        inner = [one for one in near if 0 < one.place.number - begin.number <= _WITHIN and one.rank < _SILENT]
        inner = [one for one in inner if not tells_of_process(one.place.text)]
        if not outer or not inner:
            continue
        unknown = [one for one in inner if one.symptom is None]
        ranks |= {id(one): max(one.rank, KNOWN["wrapper"]) for one in outer}
        ranks |= {id(one): one.rank + EARLIER for one in unknown[:-1] if not one.survived}
    return [replace(one, rank=ranks[id(one)]) for one in found]


def may_have_ended_run(place: LogLine, evidence: Evidence) -> bool:
    """Whether a line may have ended the run: no training went on after it, and the run had not come to its end before
    it."""
    if evidence.finished is not None and not _fails_at_end(place, evidence.finished, evidence):
        return False
    goes_on = place.offset < evidence.progress and not _ends_job(place, evidence)
    return not goes_on and (evidence.complete is None or place.offset > evidence.complete.offset)


_OF_SLURM = re.compile(
    r"\bslurmstepd: error: (?:Detected \d+ oom.?kill event|\*\*\* (?:JOB|STEP) \S+ ON .*\bCANCELLED\b"
    r"|(?:Job|Step|StepId=\S+|Exceeded)\b.* memory limit\b)",
    re.IGNORECASE,
)
"""What Slurm says of a job or a step when it ends."""


def _ends_job(place: LogLine, evidence: Evidence) -> bool:
    """Whether Slurm ended the job with this line, and what is below it was only held back in a buffer, as a progress
    bar is that a pipe passes on late."""
    lines, _ = evidence.ends.get(place.file, (0, 0))
    return lines - place.number <= WHILE and _OF_SLURM.search(place.text) is not None


def _fails_at_end(place: LogLine, finished: LogLine, evidence: Evidence) -> bool:
    """Whether a failure counts in a log that says `Training completed`.

    verl's asynchronous trainers also print that where one of their parts has failed, some steps before the last one.
    After it, processes that end complain of each other; a failure of the program itself counts, and an exit status.
    """
    if place.offset < finished.offset:
        return evidence.steps is not None and (evidence.step or evidence.counted or 0) < evidence.steps
    of_main = any(one.place == place and one.calls and _is_of_main(one) for one in evidence.raised)
    return of_main or (evidence.failed is not None and evidence.failed.offset > finished.offset)


def _is_of_main(one: Raised) -> bool:
    """Whether an exception ended the program itself: its frames begin there, or hydra leaves those out."""
    by_hydra = any(place.text.startswith("Error executing job with overrides") for place in one.before)
    return by_hydra or is_of_main(one.calls[0].frame)


def _of_last_start(found: Sequence[Candidate], started: LogLine | None) -> list[Candidate]:
    """The candidates, where what failed before a server was last started comes behind what failed after that."""
    if started is None:
        return list(found)

    def is_earlier(one: Candidate) -> bool:
        return one.place.file == started.file and one.place.number < started.number

    if not any(one.rank < FOLLOWS and not one.survived and not is_earlier(one) for one in found):
        return list(found)
    return [replace(one, rank=max(one.rank, FOLLOWS)) if is_earlier(one) else one for one in found]


def _without_shell(found: Sequence[Candidate], evidence: Evidence) -> list[Candidate]:
    """The candidates, where an error of the shell before the job comes behind what the job itself says; without it
    where the job only ran on.

    What is missing in the job may be missing because of it: `conda: command not found`, and then no torch.
    """
    last = {hit.symptom.id: hit.last.text for hit in evidence.hits}

    def of_shell(one: Candidate) -> bool:
        text = last.get(one.symptom.id, one.place.text) if one.symptom is not None else one.place.text
        return is_of_shell(one.place.text) and is_of_shell(text)

    job = [one for one in found if not of_shell(one)]
    if len(job) == len(found):
        return list(found)
    first = min((one for one in job if one.rank < _SHELL), key=lambda one: (one.rank, one.place.offset), default=None)
    if first is not None and _MISSING.search(first.place.text):
        return list(found)
    left = [one for one in found if one not in job and (job or not _ran_on(one.place, evidence))]
    return [*job, *(replace(one, rank=max(one.rank, _SHELL)) for one in left)]


_PROMPT = re.compile(r"(?:\([^()]{1,200}\) ?)*\[?[\w.-]+@[\w.-]+[: ][^#$]{0,200}[#$] ?(?P<command>\S.*)$")
"""A command at the prompt of a shell, in a terminal's session: `(verl) me@node1:~/verl$ python3 -m verl.trainer`."""


def _without_corrected(found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, without mistakes on a command line that was given again, corrected, on the next prompt."""
    return [one for one in found if one.symptom is None or not _is_given_again(one)]


def _is_given_again(one: Candidate) -> bool:
    if not any(place.text.startswith("usage: ") for place in one.about if place.number < one.place.number):
        return False
    given = [(place.number, at["command"].split()) for place in one.about if (at := _PROMPT.match(place.text))]
    above = [words for number, words in given if number < one.place.number]
    below = [words for number, words in given if number > one.place.number]
    return bool(above and below) and above[-1][:3] == below[0][:3] and above[-1] != below[0]


_MISSING = re.compile(r"ModuleNotFoundError|ImportError|No module named|not found\b")


def _ran_on(place: LogLine, evidence: Evidence) -> bool:
    """Whether the job went on after an error of its shell: a phase began, or much else was printed."""
    lines, _ = evidence.ends.get(place.file, (0, 0))
    later = any(begun.offset > place.offset for begun in evidence.begun.values())
    return later or lines - place.number > WHILE


def _in_the_step_before(one: Raised, evidence: Evidence) -> bool:
    """Whether an exception may be the cause of effects: other ranks can make one more step before they notice it."""
    plain = one.nature == "exception" and not one.chained and not one.handled
    return (
        plain
        and evidence.progress_before <= one.place.offset < evidence.progress
        and not _is_covered(one, evidence.hits)
    )


def _is_generic_exception(hit: Hit, evidence: Evidence) -> bool:
    """Whether a record of many causes covers an exception that the run did not survive."""
    symptom = hit.symptom
    raised = raised_at(hit.start, evidence) if symptom.generic and symptom.part == "cause" else None
    return raised is not None and not raised.handled and not phase_later(hit.start, evidence)


_RAISE = re.compile(r"raise (?P<name>[A-Z][\w.]*)\(")
_AT = re.compile(r"(?P<path>[\w./-]+\.py):(?P<line>\d+)\s")
_SHORTLY = 3


def _raised_above(found: Sequence[Candidate]) -> list[Candidate]:
    """The exception whose code is quoted shortly above a line that only tells of a failure elsewhere, in a shortened
    traceback: `engine/worker.py:81  raise ValueError("no rows are left")`."""
    first = found[0] if found else None
    if first is None or first.symptom is None or first.symptom.part != "wrapper":
        return []
    for place in reversed([one for one in first.about if 0 < first.place.number - one.number <= _SHORTLY]):
        code = strip_labels(place.text).text.strip()
        named, words = _RAISE.match(code), literal_raised(code)
        told = any(words in one.text for one in first.about if one.number > place.number)
        if (
            named is None
            or not code.endswith(")")
            or not words
            or told
            or nature(named["name"], None, words) != "exception"
        ):
            continue
        at = _AT.search(place.text)
        calls = (Call(f'File "{at["path"]}", line {at["line"]}, in ?', code),) if at is not None else ()
        said = f"{named['name']}: {words}"
        raised = Raised(named["name"], place, place, "exception", phase=first.phase, message=(said,), calls=calls)
        return [Candidate(UNKNOWN["exception"], place, 1, False, None, first.phase, first.about, raised=raised)]
    return []


def _passed_on_before(found: Sequence[Candidate]) -> list[Candidate]:
    """The exception shortly before the first candidate, where that only tells of an effect and both lines are a child's
    output, which its parent has logged: `… - INFO - ValueError: no rows are left`."""
    first = found[0] if found else None
    if first is None or first.rank < FOLLOWS or strip_labels(first.place.text).level != "INFO":
        return []
    for place in reversed([one for one in first.about if one.number < first.place.number]):
        label = strip_labels(place.text)
        if (
            label.level == "INFO"
            and (named := ALONE.match(label.text))
            and nature(named["name"], None, label.text) == "exception"
        ):
            own = first.symptom.phase if first.symptom is not None else ()
            phase = first.phase or next(iter(own), None)
            raised = Raised(named["name"], place, place, "exception", phase=phase, message=(label.text,))
            return [Candidate(UNKNOWN["exception"], place, 1, False, None, phase, first.about, raised=raised)]
    return []


def _announcement_before(found: Sequence[Candidate]) -> list[Candidate]:
    """The last line with an error before the first candidate, where all candidates show only that something ended."""
    if not found or (found[0].symptom is not None and found[0].symptom.part != "wrapper") or found[0].rank < _SILENT:
        return []
    first = min(found, key=lambda one: one.place.offset)
    for place in reversed([place for place in first.about if place.number < first.place.number]):
        stripped = strip_labels(place.text)
        if stripped.level in ("DEBUG", "INFO", "WARNING"):
            return []
        if _WRONG.search(stripped.text) and not points_elsewhere(stripped.text) and not _OF_CODE.match(stripped.text):
            return [Candidate(_SILENT, place, 1, survived=False, phase=first.phase, about=first.about)]
    return []


def _waits_before_end(found: Sequence[Candidate], evidence: Evidence) -> list[Candidate]:
    """What a stalled run was waiting for when something external ended it: `timeout`, a scheduler, a user."""
    if not found or found[0].symptom is None or found[0].symptom.part != "end":
        return []
    phase = found[0].phase or evidence.phase or next(reversed(list(evidence.spans)), None)
    if phase is None or phase == "loop" or evidence.spans.get(phase, 0) < _STALLED:
        return []  # The loop lasts for all steps, so its length does not show a stall.
    stood = evidence.wait_before_end
    if stood is None:
        # What it waits for may be printed long before the end, as Ray's `cannot be scheduled` is.
        waits = [one for one in found if one.symptom is not None and one.symptom.kind == "stall" and not one.survived]
        return [replace(one, rank=0) for one in waits[:1]]
    if not may_have_ended_run(stood.first, evidence):
        return []
    return [Candidate(0, stood.first, 1, survived=False, symptom=stood.symptom, phase=phase, about=stood.around)]


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
    end = one.place.number + (0 if one.nature == "told" or is_of_installer(one.place.text) else _MESSAGE)
    for hit in hits:
        for place in {hit.start, hit.last}:
            if place.file == one.place.file and place.number == one.place.number:
                return True
            within = begin <= place.number <= end
            if (
                within
                and hit.symptom.part == "cause"
                and hit.symptom.kind != "notice"  # A notice is no cause: `the process group was not closed`.
                and (place.file, place.speaker) == (one.place.file, one.place.speaker)
            ):
                return True
    return False


def is_at_end(place: LogLine, evidence: Evidence) -> bool:
    """Whether a line is among the last ones of its file."""
    lines, _ = evidence.ends.get(place.file, (0, 0))
    return place.number > lines - _END
