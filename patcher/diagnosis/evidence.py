"""What was found in a log, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.diagnosis.milestones import Phase
from patcher.records.symptoms import Symptom


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a log: its file, its number from 1, the byte that it begins at, counted over all files read."""

    file: str
    number: int
    offset: int
    text: str
    """Without colours and Ray's prefix, at most 500 characters."""
    actors: tuple[str, ...] = ()


@dataclass(slots=True)
class Hit:
    """A symptom's sign: where it was first seen and last, how often, and how many steps had been made before."""

    symptom: Symptom
    first: Place
    last: Place
    count: int = 1
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that ended a traceback, or stands alone. `name` as it was printed, wrappers told apart."""

    name: str
    place: Place
    wrapper: bool
    """Whether it only carries another one: RayTaskError, ChildFailedError."""
    chained: bool = False
    """Whether another traceback of the same speaker came of it."""
    frames: tuple[str, ...] = ()
    """`path:function` of its frames, innermost last; at most 8."""


@dataclass(slots=True)
class Evidence:
    """All that one pass over a log has found. Bounded, whatever the log's size."""

    hits: list[Hit] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    """The first and the last ones."""
    wait: Hit | None = None
    """The symptom of which the log's last words are the sign, where it ends without an end."""
    trends: list[Hit] = field(default_factory=list)
    phase: Phase | None = None
    spans: Mapping[Phase, float] = field(default_factory=dict)
    step: int | None = None
    steps: int | None = None
    progress: int = 0
    """The offset of the last sign that training went on: a step, a bar that moved."""
    finished: Place | None = None
    """The sign that the run came to its end."""
    last: tuple[Place, ...] = ()
    """The last lines that say something."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of packages, as the log tells them."""
    lines: int = 0
    size: int = 0
