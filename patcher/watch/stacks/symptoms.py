"""Symptoms by where processes stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patcher.diagnose.timed_pattern import TimedPattern
from patcher.diagnose.verdict import versions_allow
from patcher.records.symptoms import Stack, Symptom
from patcher.watch.stacks.frame_meaning import idle
from patcher.watch.stacks.grouping import ORDER
from patcher.watch.stacks.processes import Frame, Process

_LONGEST = 4000
"""Characters of a frame's path and name that are looked at."""


@dataclass(frozen=True, slots=True)
class StackSymptom:
    """A symptom, a process that shows it, and the frame that its first pattern was found in, if it has any."""

    symptom: Symptom
    process: Process
    frame: Frame | None

    @property
    def text(self) -> str:
        """The sign in a word: where the process stands, else what it is called."""
        return self.frame.place if self.frame is not None else self.process.title


def find_in_stacks(
    symptoms: Iterable[Symptom], processes: Sequence[Process], odd: Sequence[int], versions: Mapping[str, str]
) -> tuple[StackSymptom, ...]:
    """One sign of each symptom, the most telling first. `odd` are processes by number.

    A process that only waits for work, such as an engine without a request, is no sign of anything.
    """
    found = []
    for symptom in symptoms:
        if symptom.stacks and versions_allow(symptom.when, versions):
            signs = [sign for process in processes for sign in _signs(symptom, process)]
            if signs:
                found.append(min(signs, key=lambda sign: _rank(sign, odd)))
    return tuple(sorted(found, key=lambda sign: (sign.symptom.part != "cause", _rank(sign, odd))))


def _rank(sign: StackSymptom, odd: Sequence[int]) -> tuple[bool, int, int]:
    """Odd processes before others, those that do the work before those that wait for them, what is further in first."""
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
    """The frame of the first pattern, where all patterns are found."""
    places = []
    for pattern in stack.frames:
        search = TimedPattern(pattern)
        place = next((frame for frame in frames if any(search.finds(text[:_LONGEST]) for text in frame.texts)), None)
        if place is None:
            return None
        places.append(place)
    return places[0]
