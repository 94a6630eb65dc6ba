"""What it means that a process stands in a frame: what it does there, and the phase that this belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.i18n import Phrase, phrase
from patcher.logs.milestones import Phase
from patcher.watch.stacks.folding import outermost_call
from patcher.watch.stacks.frames import GENERAL, IDLE, PHASES, SPECIFIC, Act
from patcher.watch.stacks.model import Frame, Process


@dataclass(frozen=True, slots=True)
class Doing:
    """What a process does."""

    act: Act
    told: Phrase


_SPECIFIC, _GENERAL, _IDLE = (
    tuple((re.compile(pattern), act, told) for pattern, act, told in table) for table in (SPECIFIC, GENERAL, IDLE)
)
_PHASES = tuple((re.compile(pattern), phase) for pattern, phase in PHASES)
_NEAR = 12
"""Frames from the innermost one on that say what a process does; those further out say for what."""


def doing(frames: Sequence[Frame]) -> Doing | None:
    """What the innermost frame that tells it says, a package's before Python's own; None where none does."""
    if (found := idle(frames)) is not None:
        return found
    if any(frame.path.startswith("importlib") for frame in frames[:_NEAR]):
        return Doing("works", phrase("imports modules"))
    call = [outermost_call(frames)] if frames else []
    for table, looked in ((_SPECIFIC, frames[:_NEAR]), (_GENERAL, (*call, *frames[:_NEAR]))):
        for frame in looked:
            if (found := _found(table, frame)) is not None:
                return found
    return None


def idle(frames: Sequence[Frame]) -> Doing | None:
    """What a process waits for that only waits for work; None where something of the job's own is called."""
    own = next((frame for frame in frames if not frame.library), None)
    return None if own is None else _found(_IDLE, own)


def phase_of(frames: Sequence[Frame]) -> Phase | None:
    """The phase that the first frame belongs to that belongs to one, from the innermost on."""
    for frame in frames:
        for pattern, phase in _PHASES:
            if any(pattern.search(text) for text in frame.texts):
                return phase
    return None


def phase(processes: Sequence[Process]) -> Phase | None:
    """The phase that the ranks are in, else the engines, else whoever leads."""
    for role in ("rank", "engine", "loader", "driver"):
        for process in processes:
            if process.role == role and process.main is not None and (found := phase_of(process.main.frames)):
                return found
    return None


def _found(table: Sequence[tuple[re.Pattern[str], Act, Phrase]], frame: Frame) -> Doing | None:
    for pattern, act, told in table:
        if any(pattern.search(text) for text in frame.texts):
            return Doing(act, told)
    return None
