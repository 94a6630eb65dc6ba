"""When a run counts as slow or stalled: its phase against the clock (timeouts), signs of life in its log, what its
processes do.

When a phase is slow, and from when on it may hang, follows from what it usually takes in this profile. Usual is up to
three minutes and hung from ten on, as experience with small runs has it; a phase that may usually take longer has the
same factor. A progress bar that has not moved for two minutes stands still, unless something is read.

`Source` is what the lines come from: a log on this machine (`local_log`) or on a host (`host_log`).
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
"""A process by its host and its number."""
WINDOW = 9.0
"""Seconds over which work is counted: what was done before a run came to stand must not pass for work of now."""
BUSY = 10.0
"""Percent of a core from which on a process computes. Set by hand: one that only polls stays below."""
DISK_BYTES = 256 << 10
"""Bytes a second from or to disks that are work. Set by hand, as the next two are: logs and metrics write less."""
CALLED_BYTES = 4 << 20
"""Bytes a second that were read by calls, from whatever: the page cache included."""
GROWN_BYTES = 8 << 20
"""Bytes of memory a second that were taken: what is mapped and then touched is not read by calls."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Per second, over the last seconds. None of it is known (`seconds` 0) after a single look."""

    seconds: float = 0.0
    cpu: Mapping[Name, float] = field(default_factory=dict)
    """Percent of a core by process, Ray's own left out."""
    wanted: Mapping[Name, float] = field(default_factory=dict)
    """The same with the time for which it could have run, and others did."""
    disk: float = 0.0
    called: float = 0.0
    grown: float = 0.0
    memory: int = 0
    processes: int = 0
    gpus: Sequence[Mapping[str, Any]] = ()

    @property
    def reads(self) -> bool:
        """Whether something is read or written: a load that goes on."""
        return self.disk >= DISK_BYTES or self.called >= CALLED_BYTES or self.grown >= GROWN_BYTES

    @property
    def busy(self) -> tuple[Name, ...]:
        """The processes that compute, or wait by looking again and again."""
        return tuple(name for name, share in self.wanted.items() if share >= BUSY)

    @property
    def still(self) -> bool:
        """Whether nothing computes, reads or writes; False where that is not known."""
        return self.seconds > 0 and not self.reads and not self.busy


class UsageHistory:
    """Takes what `pulse` answers, in order, each process with its `host`."""

    def __init__(self) -> None:
        self._looks: deque[Mapping[str, Any]] = deque()
        self.still_since: float | None = None
        """Since when nothing has worked, by the clock of the looks."""
        self.gpus: Sequence[Mapping[str, Any]] = ()

    def take(self, look: Mapping[str, Any]) -> Activity:
        """Take one look. Returns what has been done over the last WINDOW seconds."""
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
        """What has been done since the oldest look that is kept."""
        if len(self._looks) < 2:
            return Activity()
        return between(self._looks[0], self._looks[-1], self.gpus)


def between(first: Mapping[str, Any], last: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]] = ()) -> Activity:
    """What was done from one look to the other. What is new since then counts from its beginning."""
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
"""Of the usual highest time, as ten minutes are of three."""
FLOOR = 120.0
"""Seconds below which nothing is taken to hang; also those of a progress bar that does not move."""
STILL = 180.0
"""Seconds without a line and without any work of the job's processes, whatever the phase. Set by hand: the usual three
minutes once more, as a process that waits for a network disk does nothing either."""
SILENT = 60.0
"""Seconds without a new line that a phase over its limit must have had to be taken to hang. Set by hand."""
RECENT = 20
"""Steps whose times count for the next one: responses grow longer in a training, so the first steps tell little."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of a phase, or of one step of the loop: `usual` up to the second, `hung` from there on."""

    usual: tuple[float, float]
    hung: float
    still: float = STILL


def limits(profile: Profile, phase: Phase | None, steps: Sequence[float] = ()) -> Limits:
    """What holds for a phase. `steps` are the times of the run's own steps, which count for the next one.

    The first step warms up, so it counts only as long as there is no other.
    """
    usual = usual_seconds(profile, phase or "config")
    recent = (steps[1:] or steps)[-RECENT:]
    if phase == "loop" and recent:
        usual = (min(recent), max(recent))
        return Limits(usual, max(FLOOR, FACTOR * usual[1]), max(STILL, FACTOR * usual[1]))
    return Limits(usual, max(FLOOR, FACTOR * usual[1]), STILL)


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
"""Bytes of an open line that are looked at: the state of a progress bar."""
_SAME = 64
"""How many of the last different lines a line is compared with: retries of several workers take turns."""


def open_end(piece: bytes) -> str:
    """What a piece of a log ends with that has no line end yet: a progress bar, mostly."""
    last = piece[max(piece.rfind(b"\n"), piece.rstrip(b"\r").rfind(b"\r")) + 1 :]
    return last[:_LONGEST].decode("utf-8", "replace").strip()


class LogActivity:
    """Takes lines in order, with their times."""

    def __init__(self) -> None:
        self.lived = 0.0
        """When the log last grew by something new."""
        self.bar: str | None = None
        """The progress bar that is the last in it."""
        self.moved = 0.0
        """When that bar last changed."""
        self._seen: deque[str] = deque(maxlen=_SAME)
        self._reported: deque[str] = deque(maxlen=_SAME)

    def take(self, text: str, at: float) -> bool:
        """Take a line without prefixes. Returns whether it is a sign of life: a new text that speaks of no waiting."""
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
        """Whether a line is worth showing to who watches, once."""
        message = _TIMES.sub("", text.strip())
        if not _TELLS.search(text) or message in self._reported:
            return False
        self._reported.append(message)
        return True


Pace: TypeAlias = Literal["normal", "slow", "suspect"]
Reason: TypeAlias = Literal["limit", "bar", "still", "given"]
"""`limit`: the phase takes longer than it ever should, and is silent; `bar`: a progress bar does not move; `still`:
no process does anything; `given`: the limit of the command line."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run is at a time. `seconds`: in its phase, or since its last step; `silent`: since its log lived."""

    pace: Pace
    phase: Phase | None
    seconds: float
    silent: float
    limit: float
    usual: tuple[float, float]
    reason: Reason | None = None
    over: float = 0.0
    """How many times the limit it has waited by now."""


class RunState:
    """Takes lines and looks at processes as they come; times are seconds since the job's start."""

    def __init__(self, profile: Profile, given: float | None = None) -> None:
        self.profile: Profile = profile
        self.milestones = Milestones()
        self.reached: list[Milestone] = []
        self.signs = LogActivity()
        self.pulses = UsageHistory()
        self.activity = Activity()
        self.steps: list[float] = []
        self.begun = 0.0
        """From when on silence counts at the earliest: that watching began where no log says anything."""
        self.given = given
        self._phase: Phase | None = None
        self._since = 0.0
        self._telling: list[str] = []
        self._still: float | None = None

    @property
    def phase(self) -> Phase | None:
        """The phase by the log; None before the first one."""
        return self.milestones.phase

    @property
    def limits(self) -> Limits:
        """What holds for the phase it is in."""
        return limits(self.profile, self.phase, self.steps)

    def take_line(self, line: Line, at: float) -> tuple[Milestone, ...]:
        """Take a line. Returns the milestones that it has reached, each with the time that is usual for it."""
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
            self._phase, self._since = (
                self.phase,
                max(self._since, self.milestones.begun.get(self.phase or "config", at)),
            )
            self._since = at if self.phase == "weight-sync" else self._since
        return found

    def telling(self) -> list[str]:
        """The lines that are worth showing and have not been asked for yet."""
        found, self._telling = self._telling, []
        return found

    def take_text(self, text: str, at: float) -> None:
        """Take a text only as a sign of life; the first one of all is also the beginning."""
        if not self.milestones.begun and text.strip():
            self.take_line(Line(text, 1, 0), at)
        self.signs.take(strip_prefix(text).text, at)

    def take_usage(self, look: Mapping[str, Any], at: float) -> None:
        """Take what the processes have used so far."""
        self.activity = self.pulses.take(look)
        still = self.pulses.still_since
        self._still = None if still is None else at - (look["at"] - still)

    def status(self, now: float) -> RunStatus:
        """Where the run is. `suspect` is to be proved by what its processes are seen to do."""
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
    """That it is over: the exit code where somebody noted it, and whether the job was asked to stop."""

    code: int | None = None
    stopped: bool = False
    lost: bool = False
    """It is gone, and nobody noted how it ended."""
    unseen: bool = False
    """Nobody was seen to write its log: it had ended before, or nobody ever did."""


class Source(Protocol):
    """A log and the job that writes it."""

    name: str

    @property
    def profile(self) -> str | None:
        """The job's profile, where the log is that of a job of ours."""

    @property
    def unwritten(self) -> bool:
        """Whether no process is seen that writes the log, and none was."""
        return False

    def begin(self, state: RunState) -> None:
        """Tell what there is already."""

    def read(self, state: RunState, seconds: float) -> None:
        """Tell what comes, for so long."""

    def now(self) -> float:
        """Seconds since the job's start."""

    def update_members(self, look: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Take the processes that were seen, as `UsageMeter.look` tells them; of a job of ours its state says more."""
        return

    def end(self) -> End | None:
        """How it ended; None as long as it runs, as far as is known."""

    def content(self) -> list[tuple[str, BinaryIO]]:
        """The log, opened to be read from its beginning, or as much of its end as is kept; by name."""

    def close(self) -> None:
        """Close what is open, if anything is."""
        return
