"""The loop of `watch`: read lines as they come, sample the processes now and then, take stacks where the run seems
stalled.

Where the state is `suspect`, stacks are taken a few times, some seconds apart. A run whose processes compute and are
seen in ever other places goes on; one that stands in one and the same place has stalled. Against false alarms, a
process that compiles or loads in one place is waited for longer (`COMPUTING`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patcher.i18n import Phrase
from patcher.logs.milestones import Milestone
from patcher.watch.machines import Machine
from patcher.watch.result import Snapshot
from patcher.watch.run_state import End, Name, RunState, RunStatus, Source
from patcher.watch.stacks.frame_meaning import meaning_of, phase_of_processes
from patcher.watch.stacks.grouping import group_processes
from patcher.watch.stacks.processes import Process

_COMPILERS = ("cc1", "cc1plus", "cicc", "clang", "g++", "gcc", "hipcc", "ld", "ninja", "nvcc", "ptxas")


def frames_changed(first: Sequence[Process], second: Sequence[Process], busy: Sequence[Name]) -> bool:
    """Whether a process that computes, among `busy`, stands elsewhere now, or one has come or gone."""
    before = {(process.host, process.pid): process for process in first if _counts(process)}
    after = {(process.host, process.pid): process for process in second if _counts(process)}
    if before.keys() != after.keys():
        return True
    return any(_calls(before[one]) != _calls(after[one]) for one in busy if one in before and before[one].threads)


def is_working(processes: Sequence[Process], busy: Sequence[Name]) -> bool:
    """Whether a process that computes does so where work is done, or where nobody can tell that it waits."""
    for process in processes:
        main = process.main
        if (process.host, process.pid) in busy and process.role != "system":
            found = meaning_of(main.frames) if main is not None else None
            if found is None or found.act == "works":
                return True
    return False


def _counts(process: Process) -> bool:
    return process.role not in ("system", "helper") or process.title.partition(" ")[0].rpartition("/")[2] in _COMPILERS


def _calls(process: Process) -> tuple[str, ...]:
    """The functions that are called: lines change also where something only looks again and again."""
    main = process.main
    return tuple(frame.place for frame in (main.frames if main is not None else ()) if not frame.library)


SLICE = 1.0
"""Seconds of reading between decisions: what a person takes for at once."""
PULSE = 3.0
"""Seconds between looks at the processes: three of them make up `run_state.WINDOW`."""
APART, LOOKS = 4.0, 5
"""Seconds for which stacks are looked at again, and how often, to see whether something moves."""
COMPUTING = 2.0
"""Times the limit for which a process that computes in one and the same place is waited for.

Set by hand: a compiler or a large `torch.load` is in one place for long.
"""
MOVING = 10.0
"""Times the limit for which one is waited for that is seen in ever other places, and says nothing. Set by hand."""
EVERY = 10.0
"""Seconds between looks at whether a log that nobody is seen to write tells of its end: a look reads all of it."""
AGAIN = 30.0
"""Seconds before what moved after all is suspected again: stacks cost the training a little."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions that are called with what is new: milestones, the job's age, telling lines, the status when it
    changes, and what is in the way."""

    milestone: Callable[[Milestone], object] = _nothing
    time: Callable[[float], object] = _nothing
    telling: Callable[[str], object] = _nothing
    status: Callable[[RunStatus, RunState], object] = _nothing
    problem: Callable[[Phrase], object] = _nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why watching ended: the run's end, a stall with what was seen, or neither where only one look was wanted."""

    status: RunStatus
    end: End | None = None
    snapshot: Snapshot | None = None
    stalled: bool = False


def combine_usage(looks: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The processes of all places as one look, each with its `host`; at our own time, for clocks differ."""
    found = [dict(one, host=name) for look, name in zip(looks, names, strict=True) for one in look["processes"]]
    gpus = [dict(gpu, host=name) for look, name in zip(looks, names, strict=True) for gpu in look["gpus"] or ()]
    return {"at": time.time(), "processes": found, "gpus": gpus}


class Watcher:
    """One run, watched."""

    def __init__(
        self,
        source: Source,
        places: Sequence[Machine],
        state: RunState,
        listener: Listener,
        *,
        native: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_over`: whether the log as it is now tells how the run ended."""
        self.source = source
        self.places = places
        self.state = state
        self._listener = listener
        self._native = native
        self._notified = 0
        self._pulsed = -PULSE
        self._pace = "normal"
        self._trusted = 0.0
        self._asked = 0.0
        self._is_over = is_over

    def begin(self) -> None:
        """Take in what there is already."""
        self._pulse()
        self.source.begin(self.state)
        self._notify()

    def once(self) -> Outcome:
        """One look: where it stands and what its processes do now."""
        self.begin()
        time.sleep(SLICE)
        self.source.read(self.state, 0.0)
        self._pulse(gpus=True)
        end = self.source.end()
        status = self.state.status(self.source.now())
        if end is not None:
            return Outcome(status, end)
        if status.pace == "suspect" and (found := self._confirm_stall(status)) is not None:
            return found
        return Outcome(status, None, self.snapshot())

    def watch(self) -> Outcome:
        """Until it ends or stalls. Raises KeyboardInterrupt where it is left."""
        self.begin()
        while True:
            self.source.read(self.state, SLICE)
            self._notify()
            if time.monotonic() - self._pulsed >= PULSE:
                self._pulse()
            end = self.source.end() or self._end_by_log()
            if end is not None:
                self.source.read(self.state, 0.0)
                self._notify()
                return Outcome(self.state.status(self.source.now()), end)
            status = self.state.status(self.source.now())
            self._listener.time(self.source.now())
            if status.pace == "suspect" and time.monotonic() >= self._trusted:
                found = self._confirm_stall(status)
                if found is not None:
                    return found
            self._notify_of_pace(status)

    def snapshot(self) -> Snapshot:
        """Where all processes of all places stand now."""
        taken = [place.stacks(self._native) for place in self.places]
        processes = [process for one in taken for process in one.processes]
        locks = [lock for one in taken for lock in one.locks]
        return Snapshot(taken, group_processes(processes, locks), phase_of_processes(processes))

    def _confirm_stall(self, status: RunStatus) -> Outcome | None:
        """The stall with what was seen, unless something is seen to move or to work after all."""
        self._pulse(gpus=True)
        status = self.state.status(self.source.now())
        if status.pace != "suspect":
            return None
        snapshot = self.snapshot()
        busy = self.state.activity.busy
        # Where nothing computes it is a stall. What computes may only poll: see whether its frames change.
        if busy and status.over < MOVING:
            goes_on, snapshot = self._goes_on(snapshot, busy)
            status = self.state.status(self.source.now())
            patient = self.state.given is None and status.over < COMPUTING
            goes_on = goes_on or (patient and is_working(snapshot.processes, busy))
            if goes_on or status.pace != "suspect":
                self._trusted = time.monotonic() + min(AGAIN, status.limit)
                return None
        end = self.source.end()
        return Outcome(status, end, snapshot, stalled=end is None)

    def _goes_on(self, snapshot: Snapshot, busy: Sequence[Name]) -> tuple[bool, Snapshot]:
        """Whether what computes is seen in another place within a few seconds; and where it was seen last."""
        for _ in range(LOOKS):
            self.source.read(self.state, APART / LOOKS)
            again = self.snapshot()
            if frames_changed(snapshot.processes, again.processes, busy):
                return True, again
        return False, again

    def _end_by_log(self) -> End | None:
        """Where no process is seen that writes the log: its end, once the log itself tells one and is silent."""
        if not self.source.unwritten or time.monotonic() < self._asked + EVERY:
            return None
        self._asked = time.monotonic()
        return End(lost=True) if self._is_over() else None

    def _pulse(self, *, gpus: bool = False) -> None:
        self._pulsed = time.monotonic()
        looks = [place.pulse(gpus) for place in self.places]
        self.source.update_members(looks[0])
        self.state.take_usage(combine_usage(looks, [place.name for place in self.places]), self.source.now())

    def _notify(self) -> None:
        for reached in self.state.reached[self._notified :]:
            self._listener.milestone(reached)
        self._notified = len(self.state.reached)
        for text in self.state.telling():
            self._listener.telling(text)

    def _notify_of_pace(self, status: RunStatus) -> None:
        pace = "slow" if status.pace == "suspect" else status.pace
        if pace != self._pace:
            self._listener.status(status, self.state)
        self._pace = pace
