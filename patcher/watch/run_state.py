"""When a run counts as slow or stalled. That depends on the time in its phase, on signs of life in its log, and on what
its processes do.

How long a phase usually takes is known for each profile (`phase_durations`). From experience with small runs, three
minutes are usual, and after ten minutes a run hangs; the limit of each phase is its usual time with the same factor. A
progress bar that has not moved for two minutes stands still, unless the processes read or write.

`Source` is where the lines come from: a log on this machine (`local_log`) or on a host (`host_log`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

from patcher.logs.lines import Line, strip_prefix
from patcher.logs.milestones import Milestone, Milestones, Phase
from patcher.profiles.phase_durations import usual_seconds
from patcher.remote.host import Profile

Name: TypeAlias = tuple[str, int]
"""A process, by its host and pid."""
WINDOW = 9.0
"""Seconds over which usage is measured. They are few, so that work done before a stall does not count as work now."""
BUSY = 10.0
"""Percent of a core above which a process is computing. Set by hand: one that only polls uses less."""
DISK_BYTES = 256 << 10
"""Bytes per second from or to disks that count as work. Set by hand, as are the next two: logs and metrics write less.
"""
CALLED_BYTES = 4 << 20
"""Bytes per second read by system calls, also from the page cache, that count as work."""
GROWN_BYTES = 8 << 20
"""Bytes per second by which memory grows that count as work. Mapped files are read without system calls, but take
memory."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Usage per second over the last seconds. After a single look nothing is known, and `seconds` is 0."""

    seconds: float = 0.0
    cpu: Mapping[Name, float] = field(default_factory=dict)
    """Percent of a core by process, without Ray's own processes."""
    wanted: Mapping[Name, float] = field(default_factory=dict)
    """The same, plus the time for which the process could have run, but had to wait for a core."""
    disk: float = 0.0
    called: float = 0.0
    grown: float = 0.0
    memory: int = 0
    processes: int = 0
    gpus: Sequence[Mapping[str, Any]] = ()

    @property
    def reads(self) -> bool:
        """Whether the processes read, write or load: a load that goes on."""
        return self.disk >= DISK_BYTES or self.called >= CALLED_BYTES or self.grown >= GROWN_BYTES

    @property
    def busy(self) -> tuple[Name, ...]:
        """The processes that compute, or poll while they wait."""
        return tuple(name for name, share in self.wanted.items() if share >= BUSY)

    @property
    def still(self) -> bool:
        """Whether nothing computes, reads or writes; False where that is not known."""
        return self.seconds > 0 and not self.reads and not self.busy


class UsageHistory:
    """Takes the answers of `pulse`, in order; in each, every process has its `host`."""

    def __init__(self) -> None:
        self._looks: deque[Mapping[str, Any]] = deque()
        self.still_since: float | None = None
        """Since when nothing has worked, in the time of the answers; None if something works."""
        self.gpus: Sequence[Mapping[str, Any]] = ()

    def take(self, look: Mapping[str, Any]) -> Activity:
        """Take one answer. Returns the usage over the last WINDOW seconds."""
        self.gpus = look.get("gpus") or self.gpus
        while len(self._looks) > 1 and self._looks[1]["at"] < look["at"] - WINDOW:
            self._looks.popleft()
        self._looks.append(look)
        now = self.now()
        if len(self._looks) > 1 and not between(self._looks[-2], look).still:
            self.still_since = None
        elif self.still_since is None:
            self.still_since = look["at"]
        return now

    def now(self) -> Activity:
        """The usage since the oldest answer that is kept."""
        if len(self._looks) < 2:
            return Activity()
        return between(self._looks[0], self._looks[-1], self.gpus)


def between(first: Mapping[str, Any], last: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]] = ()) -> Activity:
    """The usage from one answer to the next. Of a process that is new, all it has used counts."""
    seconds = max(last["at"] - first["at"], 0.1)
    before = {(one["host"], one["pid"], one["start"]): one for one in first["processes"]}
    cpu: dict[Name, float] = {}
    wanted: dict[Name, float] = {}
    total = {"disk": 0.0, "called": 0.0, "memory": 0.0}
    own = [one for one in last["processes"] if not one["system"]]
    for one in own:
        earlier = before.get((one["host"], one["pid"], one["start"]), {})
        name = one["host"], one["pid"]
        cpu[name] = max(0.0, one["cpu"] - earlier.get("cpu", 0.0)) / seconds * 100
        wanted[name] = cpu[name] + max(0.0, one.get("ready", 0.0) - earlier.get("ready", 0.0)) / seconds * 100
        for kind in total:
            total[kind] += max(0.0, one.get(kind, 0) - earlier.get(kind, 0)) / seconds
    memory = sum(one["memory"] for one in own)
    return Activity(seconds, cpu, wanted, total["disk"], total["called"], total["memory"], memory, len(own), gpus)


FACTOR = 10 / 3
"""The limit of a phase by its usual time: as ten minutes to three."""
FLOOR = 120.0
"""Seconds below which nothing counts as hanging; also the seconds after which a progress bar stands still."""
STILL = 180.0
"""Seconds without a line and without work of any process, in any phase. Set by hand: three minutes, as a process that
waits for a network disk does nothing either."""
SILENT = 60.0
"""Seconds without a new line that a phase over its limit needs to count as hanging. Set by hand."""
RECENT = 20
"""Steps whose times predict the next one: responses grow longer during training, so the first steps say little."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds in a phase, or in a step of the loop. `usual`: the range that is normal; from `hung` on the run may hang;
    `still`: without any work, from here on."""

    usual: tuple[float, float]
    hung: float
    still: float = STILL


def limits(profile: Profile, phase: Phase | None, steps: Sequence[float] = ()) -> Limits:
    """The limits of a phase.

    Args:
        steps: the times of the run's own steps. In the loop they replace the profile's. The first step warms up, so it
            counts only while it is the only one.
    """
    usual = usual_seconds(profile, phase or "config")
    still = STILL
    recent = (steps[1:] or steps)[-RECENT:]
    if phase == "loop" and recent:
        usual = (min(recent), max(recent))
        still = max(STILL, FACTOR * usual[1])
    return Limits(usual, max(FLOOR, FACTOR * usual[1]), still)


_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\bpid=\d+|\[\d\d:\d\d<[^\]]*\]"
)
_BAR = re.compile(r"\d+%\|| \d+/\d+ \[|\[\d\d:\d\d[<,]|examples? \[|it/s|s/it")
_TRAINING = "Training Progress: "
_WAITS = re.compile(
    r"\bwait(?:s|ing|ed)?\b|\bretr(?:y|ies|ying)\b|no available shared memory|heartbeat|still (?:running|not)|"
    r"\bstuck\b|timed? ?out|cannot be scheduled|insufficient resources",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\[uky\]|\[(?:ACTOR|ROLLOUT|SYNC)\]|✓|✗|\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent|"
    r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b|\bNCCL (?:WARN|error)|watchdog|Starting weight sync|"
    r"^(?:Initializing|Starting|Loading) ",
)
_LONGEST = 500
"""Bytes of a line without an end that are read: the state of a progress bar."""
_SAME = 64
"""How many of the last different lines a line is compared with: several workers that retry print in turn."""


def open_end(piece: bytes) -> str:
    """The text at the end of a piece that has no line end yet; mostly a progress bar."""
    last = piece[max(piece.rfind(b"\n"), piece.rstrip(b"\r").rfind(b"\r")) + 1 :]
    return last[:_LONGEST].decode("utf-8", "replace").strip()


class LogActivity:
    """Takes lines in order, with their times, and finds signs of life."""

    def __init__(self) -> None:
        self.lived = 0.0
        """When the log last had something new."""
        self.bar: str | None = None
        """The progress bar at the end of the log; None if there is another line."""
        self.moved = 0.0
        """When that bar last changed."""
        self._seen: deque[str] = deque(maxlen=_SAME)
        self._reported: deque[str] = deque(maxlen=_SAME)

    def take(self, text: str, at: float) -> bool:
        """Take a line without prefixes. Returns whether it is a sign of life: new text that does not speak of
        waiting."""
        text = text.strip()
        if not text:
            return False
        is_bar = _BAR.search(text) is not None
        # `12:00:03 retrying` and `12:00:08 retrying` are one message; of a progress bar the numbers are what moves.
        message = text if is_bar else _TIMES.sub("", text)
        new = message not in self._seen
        if new:
            self._seen.append(message)
        if is_bar and not text.startswith(_TRAINING):
            if new or self.bar is None:
                self.moved = at
            self.bar = text
        else:
            self.bar = None
        if new and not _WAITS.search(text):
            self.lived = max(self.lived, at)
            return True
        return False

    def is_worth_showing(self, text: str) -> bool:
        """Whether to show a line to the user; each text is shown once."""
        message = _TIMES.sub("", text.strip())
        if not _TELLS.search(text) or message in self._reported:
            return False
        self._reported.append(message)
        return True


Pace: TypeAlias = Literal["normal", "slow", "suspect"]
Reason: TypeAlias = Literal["limit", "bar", "still", "given"]
"""`limit`: the phase takes longer than its limit, and the log is silent; `bar`: a progress bar does not move; `still`:
no process does anything; `given`: the limit of the command line is reached."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The state of a run at one time, in seconds. `seconds`: in its phase, or since its last step; `silent`: since the
    log's last sign of life."""

    pace: Pace
    phase: Phase | None
    seconds: float
    silent: float
    limit: float
    usual: tuple[float, float]
    reason: Reason | None = None
    over: float = 0.0
    """The time waited, as a multiple of the limit."""


class RunState:
    """Takes lines and answers of `pulse` as they come. Times are seconds since the start of the job."""

    def __init__(self, profile: Profile, given: float | None = None) -> None:
        self.profile: Profile = profile
        self.milestones = Milestones()
        self.reached: list[Milestone] = []
        self.signs = LogActivity()
        self.pulses = UsageHistory()
        self.activity = Activity()
        self.steps: list[float] = []
        self.begun = 0.0
        """Silence counts from here at the earliest: the time when watching began, if the log has no time."""
        self.given = given
        self._phase: Phase | None = None
        self._since = 0.0
        self._telling: list[str] = []
        self._still: float | None = None

    @property
    def phase(self) -> Phase | None:
        """The phase that the log shows; None before the first line."""
        return self.milestones.phase

    @property
    def limits(self) -> Limits:
        """The limits of the phase that the run is in."""
        return limits(self.profile, self.phase, self.steps)

    def take_line(self, line: Line, at: float) -> tuple[Milestone, ...]:
        """Take a line. Returns the milestones that it reached, each with its usual time."""
        found = tuple(
            replace(one, usual=limits(self.profile, one.phase).usual) for one in self.milestones.feed(line, at)
        )
        text = strip_prefix(line.text).text
        self.signs.take(text, at)
        if self.signs.is_worth_showing(text):
            self._telling.append(text)
        for one in found:
            self.reached.append(one)
            if one.step is not None:
                self.steps.append(one.took)
            self._since = max(self._since, one.at)
        if self.phase != self._phase:
            self._phase = self.phase
            begun = self.milestones.begun.get(self.phase or "config", at)
            # Weights are transferred in each step, and the phase's first time is that of the first transfer.
            self._since = at if self.phase == "weight-sync" else max(self._since, begun)
        return found

    def telling(self) -> list[str]:
        """The lines to show that were not returned before."""
        found, self._telling = self._telling, []
        return found

    def take_text(self, text: str, at: float) -> None:
        """Take a text only as a sign of life. The very first text is taken as a line, since it begins the run."""
        if not self.milestones.begun and text.strip():
            self.take_line(Line(text, 1, 0), at)
        self.signs.take(strip_prefix(text).text, at)

    def take_usage(self, look: Mapping[str, Any], at: float) -> None:
        """Take an answer of `pulse`."""
        self.activity = self.pulses.take(look)
        still = self.pulses.still_since
        self._still = None if still is None else at - (look["at"] - still)

    def status(self, now: float) -> RunStatus:
        """The state of the run. `suspect` must be confirmed by the stacks of its processes."""
        lived = max(self.signs.lived, self.begun)
        silent = max(0.0, now - lived)
        held = self.limits
        seconds = max(0.0, now - max(self._since, 0.0))
        limit = self.given if self.given is not None else held.hung
        reason = self._reason(now, seconds, silent, held)
        pace: Pace = "suspect" if reason is not None else "slow" if seconds > held.usual[1] else "normal"
        # Weights or data are being read: slow, but no hang. Computing proves nothing: NCCL polls while it waits.
        if pace == "suspect" and self.activity.reads:
            pace = "slow"
        shown = FLOOR if reason == "bar" else held.still if reason == "still" else limit
        waited = silent if reason != "limit" else seconds
        return RunStatus(pace, self.phase, seconds, silent, shown, held.usual, reason, waited / shown)

    def _reason(self, now: float, seconds: float, silent: float, held: Limits) -> Reason | None:
        if self.given is not None:
            return "given" if silent >= self.given else None
        if self.signs.bar is not None and now - max(self.signs.moved, self.begun) >= FLOOR and silent >= FLOOR:
            return "bar"
        if self._still is not None and min(silent, now - self._still) >= held.still:
            return "still"
        if self.milestones.begun and seconds > held.hung and silent >= SILENT:
            return "limit"
        return None


@dataclass(frozen=True, slots=True)
class End:
    """How the run ended: its exit code, None where nobody recorded it, and whether the job was asked to stop."""

    code: int | None = None
    stopped: bool = False
    unseen: bool = False
    """Whether no process was ever seen to write the log: the run ended before, or the log has no writer."""


DIAGNOSED_BYTES = 64 << 20
"""Bytes of the end of a log that are diagnosed: some six seconds over a line of 100 Mbit/s."""
LAST_LINES = 40
"""Lines of a log's end that are read first; `diagnose` keeps as many."""


class Source(Protocol):
    """A log, and the job that writes it."""

    name: str

    @property
    def profile(self) -> str | None:
        """The job's profile, if a job of uky-patch writes the log."""

    @property
    def unwritten(self) -> bool:
        """Whether no process was ever seen to write the log."""
        return False

    def begin(self, state: RunState) -> None:
        """Pass what the log has already to `state`."""

    def read(self, state: RunState, seconds: float) -> None:
        """Pass what comes within so many seconds to `state`."""

    def now(self) -> float:
        """Seconds since the start of the job."""

    def update_members(self, look: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Take the processes that were seen, as `UsageMeter.look` returns them. A source with a job does not need
        them."""
        return

    def end(self) -> End | None:
        """How the run ended; None while it runs, as far as is known."""

    def content(self) -> list[tuple[str, BinaryIO]]:
        """The log by name, opened for reading: whole, or its end if it is large."""

    def close(self) -> None:
        """Close what is open."""
        return
