"""What one pass over a log found, before it is judged; and how the evidence of several logs of one run is merged."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from patcher.logs.lines import Stripped
from patcher.logs.milestones import PHASES, Phase
from patcher.records.symptoms import Symptom

_OF_PROGRAMS = frozenset((".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".ipynb"))
_OF_DOCUMENTS = frozenset((".md", ".rst", ".json"))
"""Documents may name what a configuration holds, such as `actor_rollout_ref`. That alone does not make them logs."""

MOST_MATCHED = 64
"""How many lines of one symptom are kept: what each rank of some machines says."""
LINE_LENGTH = 500
"""Characters of a line that are kept: an exception says what matters at its beginning."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log: file, line number from 1, and `offset`.

    Offsets grow along all files that were read, so they order lines. They count cleaned bytes and are no positions in
    the file. A frame of a process's stack is a `LogLine` too: `file` then names the process, and number is 0 where the
    line is not known.
    """

    file: str
    number: int
    offset: int
    text: str
    """Without colours and Ray's prefix, at most `LINE_LENGTH` characters."""
    speaker: str = ""
    """Ray's prefixes as printed, `(WorkerDict pid=7, ip=10.0.0.2)`. They tell the output of one process from another's.
    """
    at: float | None = None
    """Seconds since 1970, from the time on this line or on one shortly before it. Good only for comparison with other
    lines."""

    @classmethod
    def of(cls, file: str, number: int, offset: int, line: Stripped, at: float | None = None) -> LogLine:
        """Make it from a line's text and prefix."""
        return cls(file, number, offset, line.text[:LINE_LENGTH], line.speaker, at)


@dataclass(slots=True)
class Hit:
    """One symptom that was found: its first and last line, how often, and how many training steps came before.

    `count` may be too low, because a word that occurs everywhere is not looked up everywhere.
    """

    symptom: Symptom
    first: LogLine
    last: LogLine
    count: int = 1
    steps: int = 0
    since: LogLine | None = None
    """The first occurrence after the last sign of progress before `last`: here the trouble began that lasted."""
    phase: Phase | None = None
    """The phase that the run was in at `since`."""
    by_ray_daemon: bool = False
    """Whether a service process wrote it, such as a Ray daemon. It may explain why another process ended."""
    weight: int = 0
    """How specific the pattern is. Of two symptoms on one line, the greater weight wins."""
    around: tuple[LogLine, ...] = ()
    """The lines around `since`, including that one."""
    matched: tuple[LogLine, ...] = ()
    """The lines from `since` on that show it, at most `MOST_MATCHED`."""

    @property
    def start(self) -> LogLine:
        """The line where what ended the run began."""
        return self.since or self.first


Nature = Literal["exception", "printed", "effect", "wrapper", "signal", "told"]
"""How an exception relates to the root cause:

- `exception`: raised by code;
- `printed`: a program printed the message of one, without a traceback;
- `effect`: seen because another process ended, such as a closed connection;
- `wrapper`: carries another exception, `RayTaskError(ValueError)`;
- `signal`: no exception, but a process that ended by a signal or with an exit code;
- `told`: no exception, but an error that a library or an installer told, and may have survived: `NCCL WARN …`.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A frame of a traceback with its code, each without labels."""

    frame: str
    """The line `File "…", line 3, in f`; "" where only the line of code is known."""
    code: str = ""
    """The lines of code below it."""
    marks: str = ""
    """The line `~~^~~` below the first of them, with which Python points at a part of it."""


@dataclass(slots=True)
class Raised:
    """An exception, with a traceback or alone on its line, or a process that ended without one. `name` is as
    printed."""

    name: str
    place: LogLine
    """The first occurrence after which the run made no more progress, as far as known."""
    last: LogLine
    nature: Nature = "exception"
    chained: bool = False
    """Whether another exception of the same chain is nearer to the root cause."""
    handled: bool = False
    """Whether the log says that it was caught, or that the interpreter ignored it."""
    count: int = 1
    phase: Phase | None = None
    frames: tuple[LogLine, ...] = ()
    """Lines of the traceback: the innermost frames, those of verl and of the user's code preferred. The last one is the
    line of code of the innermost frame, where it says more than the message."""
    before: tuple[LogLine, ...] = ()
    """The lines of the log before it."""
    message: tuple[str, ...] = ()
    """The lines of its message; the first begins with the exception's name. Empty where they are not known."""
    calls: tuple[Call, ...] = ()
    """The innermost frames with their code, outermost first. Unlike `frames` they are read and not shown."""
    tried: tuple[str, ...] = ()
    """What the same function had failed with just before, so that it tried this instead: `KeyError: 'iteration'`."""
    because: LogLine | None = None
    """Of an exception about None: a line shortly before it which says that something does not exist."""
    repeated: bool = False
    """Whether its first line that is known is one that Ray has held back, so that it was raised before that."""


@dataclass(slots=True)
class Evidence:
    """All that one pass over a log found. Its size is bounded, whatever the size of the log."""

    hits: list[Hit] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    """The first and the last exceptions, at most 100 of each."""
    wait: Hit | None = None
    """The symptom that the last lines of the log match, where the log ends without an end. Such a run waits for
    something."""
    wait_before_end: Hit | None = None
    """The same for the lines before an external end, such as `Killed` or a time limit. Only of a single log."""
    trends: list[Hit] = field(default_factory=list)
    phase: Phase | None = None
    spans: Mapping[Phase, float] = field(default_factory=dict)
    begun: Mapping[Phase, LogLine] = field(default_factory=dict)
    """The first line of each phase."""
    step: int | None = None
    steps: int | None = None
    counted: int | None = None
    """Steps that a trainer other than verl counts, where `step` is None."""
    step_lines: tuple[str, ...] = ()
    """The last steps with their metrics, as printed: `step:3 - actor/loss:0.1 - …`."""
    progress: int = 0
    """The offset of the last sign that training went on: a step, or a progress bar that moved."""
    of_run: bool = False
    """Whether the log has words of what trains or serves models, or a bar that moves, in no certain phase."""
    progressed: LogLine | None = None
    """The line of that sign."""
    progress_before: int = 0
    """The offset of the sign before that one."""
    started: LogLine | None = None
    """The last line with which a server began: a script may start it again and again, into one log."""
    finished: LogLine | None = None
    """The line that says that the run came to its end."""
    failed: LogLine | None = None
    """The last line with an exit status of a process that is not 0."""
    complete: LogLine | None = None
    """The line of the last of all steps."""
    closed: LogLine | None = None
    """The line among the last ones that says that something ended as it should."""
    complained: tuple[LogLine, ...] = ()
    """Those of the last lines that report an error by themselves, `ERROR: …`."""
    last: tuple[LogLine, ...] = ()
    """The last lines that are not empty."""
    unfinished: Raised | None = None
    """Where the log ends in the middle of a traceback: the frame and code that the traceback had reached."""
    inner: tuple[LogLine, ...] = ()
    """The last lines above what another process wrote as its errors: `# Subprocess stderr:`."""
    engines: frozenset[str] = frozenset()
    """The inference engines that the log names: `vllm`, `sglang`."""
    origins: frozenset[str] = frozenset()
    """Whose signs the log has: `verl`, or `other` for another trainer."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions by distribution, as the log names them."""
    ends: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By file: how many lines it has, and the offset of its end."""
    lines: int = 0
    size: int = 0
    cut_off: tuple[str, ...] = ()
    """The files that are archives whose end is missing."""

    @property
    def ended_well(self) -> bool:
        """Whether a line says that the run, or a part of it, came to its end, or the last of all steps was made."""
        return self.finished is not None or self.complete is not None or self.closed is not None

    @property
    def blank(self) -> bool:
        """Whether the log has no trace of a training run: no phase, step, progress, symptom, error or end.

        A source file that contains what a log would say, such as the text of an error that it raises, is no log.
        """
        if self.step is not None or self.phase not in (None, "config"):
            return False
        suffixes = {PurePath(name).suffix for name in self.ends}
        if suffixes and suffixes <= _OF_PROGRAMS:
            return True
        signs = (self.hits, self.raised, self.wait, self.trends, self.finished, self.complete, self.closed)
        if any(signs) or self.complained or self.unfinished is not None or self.progressed is not None:
            return False
        return (self.phase is None and not self.of_run) or bool(suffixes and suffixes <= _OF_DOCUMENTS)


_NEVER = sys.maxsize
"""An offset greater than all others: it is not known which of several logs goes on after the end of the run."""
_CLOCKS_APART = 1.0
"""Seconds by which the times of two processes may differ. Set by hand: loggers print whole seconds, and write later."""


@dataclass(frozen=True, slots=True)
class LogOfRun:
    """One log of a run. `written`: seconds since 1970 when the file last changed.

    `of_ray_daemon` marks the log of one of Ray's own processes, in which only symptoms count.
    """

    evidence: Evidence
    written: float
    of_ray_daemon: bool = False


def merge_evidence(parts: Sequence[LogOfRun]) -> Evidence:
    """Merge the logs of one run. The offsets in the result are ranks by time, as byte offsets of two logs cannot be
    compared."""
    if len(parts) == 1 and not parts[0].of_ray_daemon:
        return parts[0].evidence
    ordered = sorted(parts, key=lambda part: part.written)
    own = [part for part in ordered if not part.of_ray_daemon]
    found = _merge_findings(own, [part for part in ordered if part.of_ray_daemon], _Ranks(ordered))
    for part in own:
        some = part.evidence
        found.wait = some.wait or found.wait
        found.finished, found.complete = some.finished or found.finished, found.complete or some.complete
        found.counted = _larger(found.counted, some.counted)
        found.step, found.steps = _larger(found.step, some.step), _larger(found.steps, some.steps)
        found.step_lines = some.step_lines or found.step_lines
        found.phase = max((phase for phase in (found.phase, some.phase) if phase), key=PHASES.index, default=None)
        found.spans = {
            phase: max(found.spans.get(phase, 0.0), some.spans.get(phase, 0.0))
            for phase in PHASES
            if phase in found.spans or phase in some.spans
        }
        found.unfinished = some.unfinished or found.unfinished
        found.last, found.complained = some.last or found.last, some.complained if some.last else found.complained
    if found.complete is not None:
        found.complete = replace(found.complete, offset=-1)
    if found.finished is not None:
        found.finished = replace(found.finished, offset=_NEVER)
    for part in ordered:
        some = part.evidence
        found.origins |= some.origins
        found.engines |= some.engines
        found.versions = {**found.versions, **some.versions}
        found.ends = {**found.ends, **some.ends}
        found.lines, found.size = found.lines + some.lines, found.size + some.size
        found.of_run = found.of_run or some.of_run
    return found


def _merge_findings(own: Sequence[LogOfRun], daemons: Sequence[LogOfRun], ranks: _Ranks) -> Evidence:
    """The findings of the run's own logs; if those show a failure, also what Ray's logs show before it."""
    progress = max((time for part in own if (time := _time(part.evidence.progressed)) is not None), default=None)
    hits: dict[str, Hit] = {}
    for part in own:
        for hit in part.evidence.hits:
            if (start := _first_that_counts(hit.start, hit.last, part.evidence, progress)) is not None:
                _add_hit(hits, ranks.hit(replace(hit, since=start), part))
    raised = [
        ranks.raised(replace(one, place=start), part)
        for part in own
        for one in part.evidence.raised
        if (start := _first_that_counts(one.place, one.last, part.evidence, progress)) is not None
    ]
    trends = [ranks.hit(hit, part) for part in own for hit in part.evidence.trends]
    bad = [hit.start for hit in hits.values() if hit.symptom.kind == "failure"]
    bad += [one.place for one in raised if not one.handled and one.nature != "told"]
    for part in daemons if bad else ():
        for hit in part.evidence.hits:
            one = replace(ranks.hit(hit, part), by_ray_daemon=True)
            if hit.symptom.id not in hits and hit.symptom.part in ("cause", "end") and _may_have_led_to(one.first, bad):
                hits[hit.symptom.id] = one
    return Evidence(hits=list(hits.values()), raised=sorted(raised, key=lambda one: one.place.offset), trends=trends)


class _Ranks:
    """Ranks of the lines of several logs, by the time on the line, else by the time when its log was last written."""

    def __init__(self, parts: Sequence[LogOfRun]) -> None:
        self._parts = {id(part): number for number, part in enumerate(parts)}
        keys = {self._key(place, part) for part in parts for place in _places(part.evidence)}
        self._ranks = {key: rank for rank, key in enumerate(sorted(keys), 1)}

    def place(self, place: LogLine, part: LogOfRun) -> LogLine:
        return replace(place, offset=self._ranks[self._key(place, part)])

    def hit(self, hit: Hit, part: LogOfRun) -> Hit:
        since = self.place(hit.since, part) if hit.since is not None else None
        return replace(hit, first=self.place(hit.first, part), last=self.place(hit.last, part), since=since)

    def raised(self, one: Raised, part: LogOfRun) -> Raised:
        return replace(one, place=self.place(one.place, part), last=self.place(one.last, part))

    def _key(self, place: LogLine, part: LogOfRun) -> tuple[float, int, int]:
        return (place.at if place.at is not None else part.written, self._parts[id(part)], place.offset)


def _places(evidence: Evidence) -> list[LogLine]:
    found = [place for hit in (*evidence.hits, *evidence.trends) for place in (hit.first, hit.last, hit.since) if place]
    return found + [place for one in evidence.raised for place in (one.place, one.last)]


def _add_hit(hits: dict[str, Hit], hit: Hit) -> None:
    known = hits.get(hit.symptom.id)
    if known is None:
        hits[hit.symptom.id] = hit
        return
    early, late = (known, hit) if known.start.offset <= hit.start.offset else (hit, known)
    last = max(early.last, late.last, key=lambda place: place.offset)
    matched = (*early.matched, *late.matched)[:MOST_MATCHED]
    hits[hit.symptom.id] = replace(early, last=last, count=early.count + late.count, matched=matched)


def _first_that_counts(first: LogLine, last: LogLine, own: Evidence, progress: float | None) -> LogLine | None:
    """The first occurrence, or the last one, whichever the run did not survive; None where it survived both."""
    for place in (first, last):
        late = place.at is None or progress is None or place.at >= progress - _CLOCKS_APART
        if place.offset >= own.progress and late:
            return place
    return None


def _may_have_led_to(place: LogLine, bad: Sequence[LogLine]) -> bool:
    """Whether a line is early enough to have caused one of `bad`, judged by their times where they have any."""
    times = [other.at for other in bad if other.at is not None]
    return place.at is None or not times or place.at <= max(times) + _CLOCKS_APART


def _time(place: LogLine | None) -> float | None:
    return place.at if place is not None else None


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
