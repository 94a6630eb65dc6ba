"""The first release that shows a finding, from few looks at few releases: findings share them."""

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

    `look` tells which of some findings a release shows; None if the release cannot be had, which passes it over.
    """

    releases: Sequence[str]
    found: AbstractSet[T]
    look: Callable[[str, AbstractSet[T]], AbstractSet[T] | None]
    target: str
    most: int = 40
    """How many looks are taken."""
    _shown: dict[T, dict[int, bool]] = field(default_factory=dict)
    _lost: set[int] = field(default_factory=set)
    _looks: int = 0

    def run(self, known_good: Sequence[str] = ()) -> dict[T, str | None]:
        """The first release of the last run of releases that show it, by finding.

        None where every release looked at shows it, and where the looks did not suffice. `known_good` are looked at
        first; they need not be right.
        """
        self._shown = {one: {} for one in self.found}
        likely = [self.releases.index(release) for release in known_good if release in self.releases]
        for index in likely:
            self._try(index, self.found)
        self._while_never_good(self._backwards(), self.most)
        self._halve()
        self._while_never_good(self._gaps(max(likely, default=len(self.releases))), self._looks + _EXTRA)
        self._halve()
        return {one: self._since(one) for one in self.found}

    def _halve(self) -> None:
        while self._looks < self.most and (step := self._next()) is not None:
            self._try(*step)

    def _while_never_good(self, steps: Iterator[int], most: int) -> None:
        """Look on as long as there is a finding that every release so far shows."""
        for step in steps:
            left = {one for one in self.found if all(self._shown[one].values())}
            if self._looks >= min(most, self.most) or not left:
                return
            self._try(step, left)

    def _try(self, index: int, wanted: AbstractSet[T]) -> None:
        """Look at a release for those findings that it has not been looked at for."""
        wanted = {one for one in wanted if index not in self._shown[one]}
        if index in self._lost or not wanted:
            return
        self._looks += 1
        shown = self.look(self.releases[index], wanted)
        if shown is None:
            self._lost.add(index)
            return
        for one in wanted:
            self._shown[one][index] = one in shown

    @property
    def _seen(self) -> set[int]:
        return self._lost.union(*self._shown.values())

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
                marks = sorted({first, *(at for at in self._seen if first < at < last), last})
                width, low = max(((after - before, before) for before, after in pairwise(marks)), default=(0, 0))
                if width < 2:
                    break
                yield low + width // 2

    def _open(self, one: T) -> list[int]:
        """The releases among which the finding began, the first that is known to show it left out."""
        low, high = self._bounds(one)
        return [index for index in range(low + 1, high) if index not in self._lost] if low >= 0 else []

    def _bounds(self, one: T) -> tuple[int, int]:
        """The last release seen without the finding (-1: none), and the first after it that shows it."""
        low = max((index for index, shows in self._shown[one].items() if not shows), default=-1)
        return low, min((index for index in self._shown[one] if index > low), default=len(self.releases))

    def _next(self) -> tuple[int, set[T]] | None:
        """The release in the middle of most of the stretches that findings began in, and those findings."""
        stretches = {one: indexes for one in self.found if (indexes := self._open(one))}
        if not stretches:
            return None
        middles = Counter(indexes[len(indexes) // 2] for indexes in stretches.values())
        index = min(middles, key=lambda at: (-middles[at], at))
        return index, {one for one, indexes in stretches.items() if index in indexes}

    def _since(self, one: T) -> str | None:
        low, high = self._bounds(one)
        if low < 0 or self._open(one):
            return None
        return self.target if high == len(self.releases) else self.releases[high]
