"""The first release that shows a finding, from few looks at few releases: all findings share each look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
_EXTRA = 8
"""Looks into what was left out, for findings that no release so far is without."""


@dataclass
class Bisection(Generic[T]):
    """Where each of some findings began, among `releases` (oldest first; all before the one that shows them all).

    `look` tells which findings a release shows; None if the release cannot be had, which passes it over.
    """

    releases: Sequence[str]
    found: AbstractSet[T]
    look: Callable[[str], AbstractSet[T] | None]
    target: str
    most: int = 32
    """How many releases are looked at."""
    _seen: dict[int, AbstractSet[T]] = field(default_factory=dict)
    _lost: set[int] = field(default_factory=set)

    def run(self, known_good: Sequence[str] = ()) -> dict[T, str | None]:
        """The first release of the last run of releases that show it, by finding.

        None where every release looked at shows it, and where the looks did not suffice. `known_good` are looked at
        first; they need not be right.
        """
        likely = [self.releases.index(release) for release in known_good if release in self.releases]
        for index in likely:
            self._try(index)
        self._while_never_good(self._backwards(), self.most)
        self._halve()
        self._while_never_good(self._gaps(max(likely, default=len(self.releases))), len(self._seen) + _EXTRA)
        self._halve()
        return {one: self._since(one) for one in self.found}

    def _halve(self) -> None:
        while len(self._seen) < self.most and (step := self._next()) is not None:
            self._try(step)

    def _while_never_good(self, steps: Iterator[int], most: int) -> None:
        """Look on as long as there is a finding that every release so far shows."""
        for step in steps:
            if len(self._seen) >= min(most, self.most) or not self._never_good():
                return
            self._try(step)

    def _try(self, index: int) -> None:
        if index in self._seen or index in self._lost:
            return
        shown = self.look(self.releases[index])
        if shown is None:
            self._lost.add(index)
        else:
            self._seen[index] = shown & self.found

    def _backwards(self) -> Iterator[int]:
        """Ever farther back from the oldest release looked at so far, else from the target: 2, 4, 8, … releases."""
        start, back = min(self._seen, default=len(self.releases)), 2
        while back <= start:
            yield start - back
            back *= 2
        if start:
            yield 0

    def _gaps(self, end: int) -> Iterator[int]:
        """The middles of the widest stretches that nothing was looked at in: before `end`, and then after it."""
        for first, last in ((-1, end), (end, len(self.releases))):
            while True:
                marks = sorted({first, *(at for at in (*self._seen, *self._lost) if first < at < last), last})
                width, low = max((after - before, before) for before, after in pairwise(marks))
                if width < 2:
                    break
                yield low + width // 2

    def _never_good(self) -> bool:
        return any(all(one in shown for shown in self._seen.values()) for one in self.found)

    def _bounds(self, one: T) -> tuple[int, int] | None:
        """The last release seen without the finding, and the first after it seen with it; None if it is in all."""
        good = max((index for index, shown in self._seen.items() if one not in shown), default=None)
        if good is None:
            return None
        return good, min((index for index in self._seen if index > good), default=len(self.releases))

    def _open(self, low: int, high: int) -> list[int]:
        return [index for index in range(low + 1, high) if index not in self._lost]

    def _next(self) -> int | None:
        """The middle of the stretch that most findings began in."""
        stretches = Counter(bounds for one in self.found if (bounds := self._bounds(one)) and self._open(*bounds))
        if not stretches:
            return None
        inside = self._open(*min(stretches, key=lambda bounds: (-stretches[bounds], bounds)))
        return inside[len(inside) // 2]

    def _since(self, one: T) -> str | None:
        bounds = self._bounds(one)
        if bounds is None or self._open(*bounds):
            return None
        _, high = bounds
        return self.target if high == len(self.releases) else self.releases[high]
