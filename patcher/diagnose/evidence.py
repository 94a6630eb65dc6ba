"""What was found in a log, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from patcher.logs.milestones import Phase
from patcher.records.symptoms import Symptom

_OF_PROGRAMS = frozenset((".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".ipynb"))
_OF_DOCUMENTS = frozenset((".md", ".rst", ".json"))
"""Files that name what a configuration holds, `actor_rollout_ref`, and are no logs for that."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log: its file, its number from 1, and `offset`, which grows along all that was read.

    Of a stack it is a frame, its process in the place of the file; the number is 0 where no line is known.
    """

    file: str
    number: int
    offset: int
    text: str
    """Without colours and Ray's prefix, at most 500 characters."""
    actors: tuple[str, ...] = ()
    speaker: str = ""
    """Ray's prefixes as they stand."""
    at: float | None = None
    """Seconds, by the time that the line itself or one shortly before it tells; only to compare with others'."""


@dataclass(slots=True)
class Hit:
    """A symptom's sign: where it was first seen and last, how often, and how many steps had been made before.

    A word that is everywhere is not looked at everywhere, so `count` can be too low.
    """

    symptom: Symptom
    first: LogLine
    last: LogLine
    count: int = 1
    steps: int = 0
    since: LogLine | None = None
    """The first one after the last sign of progress before `last`."""
    phase: Phase | None = None
    """The phase that the log was in at `since`."""
    aside: bool = False
    """Whether it was said by a process that only keeps house, so that it may be why something else ended."""
    weight: int = 0
    """How particular the sign is: of two on one line, the greater counts."""
    around: tuple[LogLine, ...] = ()
    """The lines about `since`, that one among them."""

    @property
    def start(self) -> LogLine:
        """Where what ended the run began."""
        return self.since or self.first


Nature = Literal["exception", "effect", "wrapper", "signal"]
"""What ended: an exception; one that comes of another's end, such as a closed connection; one that only carries
another; a process that a signal or its exit code tells of."""


@dataclass(slots=True)
class Raised:
    """An exception that ended a traceback, or stands alone, or a process that ended without one. `name` as printed."""

    name: str
    place: LogLine
    """The first one after the last sign of progress before `last`."""
    last: LogLine
    nature: Nature = "exception"
    chained: bool = False
    """Whether another exception of the same chain is nearer to the root."""
    handled: bool = False
    """Whether the log itself says that it was, or the interpreter ignored it."""
    count: int = 1
    phase: Phase | None = None
    frames: tuple[LogLine, ...] = ()
    """Lines of its traceback that name the innermost frames, those of verl and of own code first of all."""
    before: tuple[LogLine, ...] = ()
    """What was said before it."""

    @property
    def wrapper(self) -> bool:
        return self.nature == "wrapper"


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
    begun: Mapping[Phase, LogLine] = field(default_factory=dict)
    """The line at which each phase began."""
    step: int | None = None
    steps: int | None = None
    progress: int = 0
    """The offset of the last sign that training went on: a step, a bar that moved."""
    progressed: LogLine | None = None
    """That sign."""
    progress_before: int = 0
    """The offset of the sign before that one."""
    finished: LogLine | None = None
    """The sign that the run came to its end; whatever comes behind it is no failure."""
    complete: LogLine | None = None
    """The last of all steps."""
    closed: LogLine | None = None
    """One of the last lines, which says that something has come to its end as it should."""
    complained: tuple[LogLine, ...] = ()
    """Those of the last lines that call themselves errors."""
    last: tuple[LogLine, ...] = ()
    """The last lines that say something."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of packages, as the log tells them."""
    ends: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By file: how many lines it has, and the offset behind it."""
    lines: int = 0
    size: int = 0

    @property
    def blank(self) -> bool:
        """Whether nothing in it is of a training run: no phase, step, progress, symptom, error or end.

        A file of sources that holds what a log would say, such as the text of an error that it raises, is no log.
        """
        if self.step is not None or self.phase not in (None, "config"):
            return False
        suffixes = {PurePath(name).suffix for name in self.ends}
        if suffixes and suffixes <= _OF_PROGRAMS:
            return True
        said = (self.hits, self.raised, self.wait, self.trends, self.finished, self.complete, self.closed)
        if any(said) or self.complained or self.progressed is not None:
            return False
        return self.phase is None or bool(suffixes and suffixes <= _OF_DOCUMENTS)
