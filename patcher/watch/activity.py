"""What the job's processes have done between two looks at them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Name: TypeAlias = tuple[str, int]
"""A process by its host and its number."""
WINDOW = 9.0
"""Seconds over which work is counted: what was done before a run came to stand must not pass for work of now."""
BUSY = 10.0
"""Percent of a core from which on a process computes."""
DISK = 256 << 10
"""Bytes a second from or to disks that are work."""
CALLED = 4 << 20
"""Bytes a second that were read by calls, from whatever: the page cache included."""
GROWN = 8 << 20
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
        return self.disk >= DISK or self.called >= CALLED or self.grown >= GROWN

    @property
    def busy(self) -> tuple[Name, ...]:
        """The processes that compute, or wait by looking again and again."""
        return tuple(name for name, share in self.wanted.items() if share >= BUSY)

    @property
    def still(self) -> bool:
        return self.seconds > 0 and not self.reads and not self.busy


class UsageHistory:
    """Takes what `pulse` answers, in order, each process with its `host`."""

    def __init__(self) -> None:
        self._looks: deque[Mapping[str, Any]] = deque()
        self.still_since: float | None = None
        """Since when nothing has worked, by the clock of the looks."""
        self.gpus: Sequence[Mapping[str, Any]] = ()

    def take(self, look: Mapping[str, Any]) -> Activity:
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
