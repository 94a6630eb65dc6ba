"""Find symptoms in stacks instead of a log: the patterns of a record are searched in frames, `path:function`.

For a stalled run they come before the symptoms of the log: the stack of a hanging process says more than its last
lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.diagnosis import Diagnosis, Finding, Offer, Role
from patcher.diagnose.ended import NOWHERE
from patcher.diagnose.evidence import LogLine
from patcher.diagnose.fixes import FixContext, fixes_for, versions_allow
from patcher.diagnose.timed_pattern import TimedPattern
from patcher.records.symptoms import Stack, Symptom
from patcher.watch.stacks.frame_meaning import idle
from patcher.watch.stacks.grouping import ORDER
from patcher.watch.stacks.processes import Frame, Process

_LONGEST = 4000
"""Characters of a frame's path and name that are searched: paths have at most 4,096."""


@dataclass(frozen=True, slots=True)
class StackSymptom:
    """A symptom, a process that shows it, and the frame that its first pattern matched; None if it has no patterns."""

    symptom: Symptom
    process: Process
    frame: Frame | None

    @property
    def text(self) -> str:
        """What shows the symptom: the place of the frame, else the title of the process."""
        return self.frame.place if self.frame is not None else self.process.title


def find_in_stacks(
    symptoms: Iterable[Symptom], processes: Sequence[Process], odd: Sequence[int], versions: Mapping[str, str]
) -> tuple[StackSymptom, ...]:
    """For each symptom that is found the process that shows it best; causes first.

    An idle process, such as an engine without a request, shows no symptom.

    Args:
        odd: the pids of the odd processes.
    """
    found = []
    for symptom in symptoms:
        if symptom.stacks and versions_allow(symptom.when, versions):
            signs = [sign for process in processes for sign in _signs(symptom, process)]
            if signs:
                found.append(min(signs, key=lambda sign: _rank(sign, odd)))
    return tuple(sorted(found, key=lambda sign: (sign.symptom.part != "cause", _rank(sign, odd))))


def _rank(sign: StackSymptom, odd: Sequence[int]) -> tuple[bool, int, int]:
    """Odd processes before others, those that do the work before those that wait for them, inner frames before outer
    ones."""
    main = sign.process.main
    frames = main.frames if main is not None else ()
    depth = frames.index(sign.frame) if sign.frame is not None and sign.frame in frames else len(frames)
    return sign.process.pid not in odd, ORDER.index(sign.process.role), depth


def _signs(symptom: Symptom, process: Process) -> Iterable[StackSymptom]:
    for stack in symptom.stacks:
        if stack.stopped and not process.stopped:
            continue
        if not stack.frames:
            yield StackSymptom(symptom, process, None)
            continue
        for thread in process.threads:
            frame = _matched(stack, thread.frames) if thread.main or not stack.main else None
            if frame is not None and not idle(thread.frames):
                yield StackSymptom(symptom, process, frame)


def _matched(stack: Stack, frames: Sequence[Frame]) -> Frame | None:
    """The frame that the first pattern matches, if every pattern matches a frame."""
    places = []
    for pattern in stack.frames:
        search = TimedPattern(pattern)
        place = next((frame for frame in frames if any(search.finds(text[:_LONGEST]) for text in frame.texts)), None)
        if place is None:
            return None
        places.append(place)
    return places[0]


def add_stack_symptoms(
    found: Diagnosis, symptoms: Sequence[Symptom], processes: Sequence[Process], odd: Sequence[int]
) -> Diagnosis:
    """Add the symptoms that the stacks of a stalled run show. They become the root, ahead of what the log shows."""
    signs = find_in_stacks(symptoms, processes, odd, found.versions)
    known = {sign.symptom.id for sign in signs}
    rest = [finding for finding in found.findings if finding.id not in known]
    context = FixContext(found.versions)
    shown = [_finding_of(sign, "root" if number == 0 else "cascade", context) for number, sign in enumerate(signs)]
    if shown:
        rest = [replace(finding, role="cascade") for finding in rest]
    return replace(found, findings=(*shown, *rest))


def _finding_of(sign: StackSymptom, role: Role, context: FixContext) -> Finding:
    rank = f" rank {sign.process.rank.number}" if sign.process.rank.number is not None else ""
    line = sign.frame.line if sign.frame is not None else 0
    place = LogLine(f"pid {sign.process.pid}{rank}", line, NOWHERE, sign.text)
    fixes = tuple(_name_process(offer, sign.process) for offer in fixes_for(sign.symptom, context))
    return Finding(sign.symptom, role, place, 1, fixes)


def _name_process(offer: Offer, process: Process) -> Offer:
    """A fix with the pid of the process in place of PID in its commands."""
    return replace(offer, commands=tuple(re.sub(r"\bPID\b", str(process.pid), one) for one in offer.commands))
