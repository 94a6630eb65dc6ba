"""Symptoms by where processes stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patcher.diagnosis.fixing import fits
from patcher.records.symptoms import Stack, Symptom
from patcher.stacks.model import Frame, Process


@dataclass(frozen=True, slots=True)
class Seen:
    """A symptom, a process that shows it, and the frame that its first pattern was found in."""

    symptom: Symptom
    process: Process
    frame: Frame


def seen(
    symptoms: Iterable[Symptom], processes: Sequence[Process], odd: Sequence[int], versions: Mapping[str, str]
) -> tuple[Seen, ...]:
    """One sign of each symptom, those of odd processes (by number) first, then as the records are ordered."""
    found = []
    for symptom in symptoms:
        if symptom.stacks and fits(symptom.when, versions):
            signs = [sign for process in processes for sign in _signs(symptom, process)]
            if signs:
                found.append(min(signs, key=lambda sign: sign.process.pid not in odd))
    return tuple(sorted(found, key=lambda sign: (sign.process.pid not in odd, sign.symptom.part != "cause")))


def _signs(symptom: Symptom, process: Process) -> Iterable[Seen]:
    for stack in symptom.stacks:
        for thread in process.threads:
            if (thread.main or not stack.main) and (frame := _matched(stack, thread.frames)) is not None:
                yield Seen(symptom, process, frame)


def _matched(stack: Stack, frames: Sequence[Frame]) -> Frame | None:
    """The frame of the first pattern, where all patterns are found."""
    places = []
    for pattern in stack.frames:
        compiled = re.compile(pattern, re.IGNORECASE)
        place = next((frame for frame in frames if any(compiled.search(text) for text in frame.texts)), None)
        if place is None:
            return None
        places.append(place)
    return places[0]
