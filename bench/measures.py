"""What the benchmark measures: a ratio, an amount, or why something could not be measured."""

from __future__ import annotations

from dataclasses import dataclass

from bench.clock import Times


@dataclass(frozen=True, slots=True)
class Figure:
    """What `ours` takes in terms of what `theirs` takes."""

    name: str
    ours: Times
    theirs: Times
    limit: float
    ceiling: float = 0
    """Where the limit is not met yet: what a run may come to before it counts as a step back. 0: the limit."""

    @property
    def ratio(self) -> float:
        return self.ours.median / self.theirs.median

    @property
    def value(self) -> float:
        """What is held to the limit."""
        return self.ratio


@dataclass(frozen=True, slots=True)
class Amount:
    """Seconds or megabytes, held to a limit of their own."""

    name: str
    value: float
    unit: str
    limit: float
    ceiling: float = 0


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """What could not be measured on this machine, and why."""

    name: str
    reason: str
