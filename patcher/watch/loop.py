"""Watch until the run ends, stalls, or is left: lines as they come, processes now and then, stacks where it stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patcher.i18n import Phrase
from patcher.logs.milestones import Milestone
from patcher.watch.activity import Name
from patcher.watch.model import Sight
from patcher.watch.places import Place
from patcher.watch.proving import moved, works
from patcher.watch.source import End, Source
from patcher.watch.stacks.grouping import grouped
from patcher.watch.stacks.meaning import phase
from patcher.watch.state import Standing, State

SLICE = 1.0
"""Seconds of reading between decisions."""
PULSE = 3.0
"""Seconds between looks at the processes."""
APART, LOOKS = 4.0, 5
"""Seconds for which stacks are looked at again, and how often, to see whether something moves."""
COMPUTING = 2.0
"""Times the limit for which a process that computes in one and the same place is waited for."""
MOVING = 10.0
"""Times the limit for which one is waited for that is seen in ever other places, and has nothing to say."""
EVERY = 10.0
"""Seconds between looks at whether a log that nobody is seen to write tells of its end."""
AGAIN = 30.0
"""Seconds before what moved after all is suspected again."""


def _nothing(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Ears:
    """Who hears what: milestones, the job's age now and then, lines that tell something, how it stands when that
    changes, and what is in the way."""

    milestone: Callable[[Milestone], object] = _nothing
    time: Callable[[float], object] = _nothing
    telling: Callable[[str], object] = _nothing
    standing: Callable[[Standing, State], object] = _nothing
    trouble: Callable[[Phrase], object] = _nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why watching ended: the run's end, a stall with what was seen, or neither where only one look was wanted."""

    standing: Standing
    end: End | None = None
    sight: Sight | None = None
    stalled: bool = False


def together(looks: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The processes of all places as one look, each with its `host`; at our own time, for clocks differ."""
    found = [dict(one, host=name) for look, name in zip(looks, names, strict=True) for one in look["processes"]]
    gpus = [dict(gpu, host=name) for look, name in zip(looks, names, strict=True) for gpu in look["gpus"] or ()]
    return {"at": time.time(), "processes": found, "gpus": gpus}


class Watcher:
    """One run, watched."""

    def __init__(
        self,
        source: Source,
        places: Sequence[Place],
        state: State,
        ears: Ears,
        *,
        native: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_over`: whether the log as it is now tells how the run ended."""
        self.source = source
        self.places = places
        self.state = state
        self._ears = ears
        self._native = native
        self._told = 0
        self._pulsed = -PULSE
        self._pace = "normal"
        self._trusted = 0.0
        self._asked = 0.0
        self._is_over = is_over

    def begin(self) -> None:
        """Take in what there is already."""
        self._pulse()
        self.source.begin(self.state)
        self._tell()

    def once(self) -> Outcome:
        """One look: where it stands and what its processes do now."""
        self.begin()
        time.sleep(SLICE)
        self.source.read(self.state, 0.0)
        self._pulse(gpus=True)
        end = self.source.end()
        standing = self.state.standing(self.source.now())
        if end is not None:
            return Outcome(standing, end)
        if standing.pace == "suspect" and (found := self._proved(standing)) is not None:
            return found
        return Outcome(standing, None, self.sight())

    def watch(self) -> Outcome:
        """Until it ends or stalls. Raises KeyboardInterrupt where it is left."""
        self.begin()
        while True:
            self.source.read(self.state, SLICE)
            self._tell()
            if time.monotonic() - self._pulsed >= PULSE:
                self._pulse()
            end = self.source.end() or self._end_by_log()
            if end is not None:
                self.source.read(self.state, 0.0)
                self._tell()
                return Outcome(self.state.standing(self.source.now()), end)
            standing = self.state.standing(self.source.now())
            self._ears.time(self.source.now())
            if standing.pace == "suspect" and time.monotonic() >= self._trusted:
                found = self._proved(standing)
                if found is not None:
                    return found
            self._paced(standing)

    def sight(self) -> Sight:
        """Where all processes of all places stand now."""
        taken = [place.stacks(self._native) for place in self.places]
        processes = [process for one in taken for process in one.processes]
        locks = [lock for one in taken for lock in one.locks]
        return Sight(taken, grouped(processes, locks), phase(processes))

    def _proved(self, standing: Standing) -> Outcome | None:
        """The stall with what was seen, unless something is seen to move or to work after all."""
        self._pulse(gpus=True)
        standing = self.state.standing(self.source.now())
        if standing.pace != "suspect":
            return None
        sight = self.sight()
        busy = self.state.activity.busy
        if busy and standing.over < MOVING:
            goes_on, sight = self._goes_on(sight, busy)
            standing = self.state.standing(self.source.now())
            patient = self.state.given is None and standing.over < COMPUTING
            goes_on = goes_on or (patient and works(sight.processes, busy))
            if goes_on or standing.pace != "suspect":
                self._trusted = time.monotonic() + min(AGAIN, standing.limit)
                return None
        end = self.source.end()
        return Outcome(standing, end, sight, stalled=end is None)

    def _goes_on(self, sight: Sight, busy: Sequence[Name]) -> tuple[bool, Sight]:
        """Whether what computes is seen in another place within a few seconds; and where it was seen last."""
        for _ in range(LOOKS):
            self.source.read(self.state, APART / LOOKS)
            again = self.sight()
            if moved(sight.processes, again.processes, busy):
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
        self.source.heard(looks[0])
        self.state.pulse(together(looks, [place.name for place in self.places]), self.source.now())

    def _tell(self) -> None:
        for reached in self.state.reached[self._told :]:
            self._ears.milestone(reached)
        self._told = len(self.state.reached)
        for text in self.state.telling():
            self._ears.telling(text)

    def _paced(self, standing: Standing) -> None:
        pace = "slow" if standing.pace == "suspect" else standing.pace
        if pace != self._pace:
            self._ears.standing(standing, self.state)
        self._pace = pace
