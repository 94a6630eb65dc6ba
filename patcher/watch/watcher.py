"""The loop of `watch`: read lines as they come, sample the processes at intervals, and take stacks if the run may have
stalled.

In the state `suspect`, stacks are taken a few times, some seconds apart. If the processes compute and their frames
change, the run goes on; if they stay in one place, it has stalled. To avoid false alarms, a process that compiles or
loads in one place gets more time (`COMPUTING`).
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
    """Whether the frames of a process in `busy` have changed, or a process has come or gone."""
    before = {(process.host, process.pid): process for process in first if _counts(process)}
    after = {(process.host, process.pid): process for process in second if _counts(process)}
    if before.keys() != after.keys():
        return True
    return any(_calls(before[one]) != _calls(after[one]) for one in busy if one in before and before[one].threads)


def is_working(processes: Sequence[Process], busy: Sequence[Name]) -> bool:
    """Whether a process in `busy` computes in frames of work, or in frames of unknown meaning."""
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
    """The functions on the stack of the main thread. Line numbers also change where a loop only polls."""
    main = process.main
    return tuple(frame.place for frame in (main.frames if main is not None else ()) if not frame.library)


SLICE = 1.0
"""Seconds of reading between decisions: short enough to feel immediate."""
PULSE = 3.0
"""Seconds between samples of usage; three of them are `run_state.WINDOW`."""
APART, LOOKS = 4.0, 5
"""Seconds during which stacks are taken again, and how often, to see whether the frames change. Set by hand."""
COMPUTING = 2.0
"""How long to wait for a process that computes in one place, as a multiple of the limit.

Set by hand: a compiler or a large `torch.load` stays in one place for long.
"""
MOVING = 10.0
"""How long to wait for processes whose frames change while the log is silent, as a multiple of the limit. Set by hand.
"""
EVERY = 10.0
"""Seconds between reads of a log without a visible writer, to see whether it shows an end. Each reads all of the log.
"""
AGAIN = 30.0
"""Seconds before a run that turned out to move is suspected again: taking stacks costs the training a little."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions that are called with what is new: milestones, the age of the job, lines to show, the status when it
    changes, and problems."""

    milestone: Callable[[Milestone], object] = _nothing
    time: Callable[[float], object] = _nothing
    telling: Callable[[str], object] = _nothing
    status: Callable[[RunStatus, RunState], object] = _nothing
    problem: Callable[[Phrase], object] = _nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why watching ended: the run ended, or stalled with these stacks, or neither if only one look was wanted."""

    status: RunStatus
    end: End | None = None
    snapshot: Snapshot | None = None
    stalled: bool = False


def combine_usage(looks: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Merge the samples of all machines into one, each process with its `host`. The time is ours, as their clocks
    differ."""
    found = [dict(one, host=name) for look, name in zip(looks, names, strict=True) for one in look["processes"]]
    gpus = [dict(gpu, host=name) for look, name in zip(looks, names, strict=True) for gpu in look["gpus"] or ()]
    return {"at": time.time(), "processes": found, "gpus": gpus}


class Watcher:
    """Watches one run."""

    def __init__(
        self,
        source: Source,
        machines: Sequence[Machine],
        state: RunState,
        listener: Listener,
        *,
        native: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_over`: returns whether the log as it is now shows how the run ended. `native`: as in `Machine.stacks`."""
        self.source = source
        self.machines = machines
        self.state = state
        self._listener = listener
        self._native = native
        self._notified = 0
        self._sampled = -PULSE
        self._pace = "normal"
        self._suspected_again = 0.0
        self._log_read = 0.0
        self._is_over = is_over

    def begin(self) -> None:
        """Read what is there already."""
        self._sample()
        self.source.begin(self.state)
        self._notify()

    def once(self) -> Outcome:
        """Take one look: the state of the run, and the stacks of its processes."""
        self.begin()
        time.sleep(SLICE)
        self.source.read(self.state, 0.0)
        self._sample(gpus=True)
        end = self.source.end()
        status = self.state.status(self.source.now())
        if end is not None:
            return Outcome(status, end)
        if status.pace == "suspect" and (found := self._confirm_stall()) is not None:
            return found
        return Outcome(status, None, self.snapshot())

    def watch(self) -> Outcome:
        """Watch until the run ends or stalls. Raises KeyboardInterrupt where the user leaves it."""
        self.begin()
        while True:
            self.source.read(self.state, SLICE)
            self._notify()
            if time.monotonic() - self._sampled >= PULSE:
                self._sample()
            end = self.source.end() or self._end_by_log()
            if end is not None:
                self.source.read(self.state, 0.0)
                self._notify()
                return Outcome(self.state.status(self.source.now()), end)
            status = self.state.status(self.source.now())
            self._listener.time(self.source.now())
            if status.pace == "suspect" and time.monotonic() >= self._suspected_again:
                found = self._confirm_stall()
                if found is not None:
                    return found
            self._notify_of_pace(status)

    def snapshot(self) -> Snapshot:
        """The stacks of all processes on all machines now."""
        taken = [machine.stacks(self._native) for machine in self.machines]
        processes = [process for one in taken for process in one.processes]
        locks = [lock for one in taken for lock in one.locks]
        return Snapshot(taken, group_processes(processes, locks), phase_of_processes(processes))

    def _confirm_stall(self) -> Outcome | None:
        """The stall and its stacks; None if the processes turn out to move or to work."""
        self._sample(gpus=True)
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
                self._suspected_again = time.monotonic() + min(AGAIN, status.limit)
                return None
        end = self.source.end()
        return Outcome(status, end, snapshot, stalled=end is None)

    def _goes_on(self, snapshot: Snapshot, busy: Sequence[Name]) -> tuple[bool, Snapshot]:
        """Whether the frames of a computing process change within a few seconds; and the last snapshot."""
        for _ in range(LOOKS):
            self.source.read(self.state, APART / LOOKS)
            again = self.snapshot()
            if frames_changed(snapshot.processes, again.processes, busy):
                return True, again
        return False, again

    def _end_by_log(self) -> End | None:
        """The end of a run without a visible writer, once its silent log shows an end."""
        if not self.source.unwritten or time.monotonic() < self._log_read + EVERY:
            return None
        self._log_read = time.monotonic()
        return End() if self._is_over() else None

    def _sample(self, *, gpus: bool = False) -> None:
        self._sampled = time.monotonic()
        looks = [machine.pulse(gpus) for machine in self.machines]
        self.source.update_members(looks[0])
        self.state.take_usage(combine_usage(looks, [machine.name for machine in self.machines]), self.source.now())

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
