"""Exceptions and killed processes as a log comes to them: the same one counts once, and only so many are kept."""

from __future__ import annotations

import re

from patcher.diagnose.evidence import Nature, Place, Raised
from patcher.records.milestones import Phase

MOST = 100
"""How many of the first and of the last ones are kept."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


class Exceptions:
    """Collects what ended."""

    def __init__(self) -> None:
        self._first: dict[str, Raised] = {}
        self._last: dict[str, Raised] = {}

    def all(self) -> list[Raised]:
        """In the order of their first places that count."""
        return sorted((*self._first.values(), *self._last.values()), key=lambda one: one.place.offset)

    def add(
        self,
        name: str,
        place: Place,
        nature: Nature,
        *,
        progress: int,
        phase: Phase | None = None,
        chained: bool = False,
        handled: bool = False,
        frames: tuple[Place, ...] = (),
    ) -> Raised | None:
        """Add one; handed back if its lines before it are still to be told. `progress`: the offset of the last sign."""
        key = f"{chained}{handled}{_NUMBER.sub('0', place.text[:200])}"
        if (known := self._first.get(key) or self._last.get(key)) is not None:
            known.count += 1
            known.last = place
            if known.place.offset >= progress:
                return None
            known.place, known.phase, known.frames = place, phase, frames
            return known
        kept = self._first if len(self._first) < MOST else self._last
        if len(kept) >= MOST:
            kept.pop(next(iter(kept)))
        kept[key] = Raised(name, place, place, nature, chained, handled, 1, phase, frames)
        return kept[key]
