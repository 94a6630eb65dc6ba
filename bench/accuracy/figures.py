"""Precision, recall and what is left unresolved, per kind of use and in total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.accuracy.labels import KINDS
from bench.accuracy.ours import Judged


@dataclass(slots=True)
class Score:
    """Counts of labels: broken ones that a tool finds and misses, sound ones that it calls broken or leaves open."""

    found: int = 0
    missed: int = 0
    open_broken: int = 0
    """Broken ones left unresolved; they count as missed, too."""
    wrong: int = 0
    sound: int = 0
    open_sound: int = 0

    @property
    def labels(self) -> int:
        return self.found + self.missed + self.wrong + self.sound

    @property
    def precision(self) -> float:
        said = self.found + self.wrong
        return self.found / said if said else 1.0

    @property
    def recall(self) -> float:
        broken = self.found + self.missed
        return self.found / broken if broken else 1.0

    @property
    def unresolved(self) -> float:
        return (self.open_broken + self.open_sound) / self.labels if self.labels else 0.0

    def add(self, judged: Judged) -> None:
        match judged.label.state, judged.said:
            case "broken", "broken":
                self.found += 1
            case "broken", said:
                self.missed += 1
                self.open_broken += said == "unresolved"
            case "holds", "broken":
                self.wrong += 1
            case "holds", said:
                self.sound += 1
                self.open_sound += said == "unresolved"


def scores(judged: Iterable[Judged]) -> dict[str, Score]:
    """By kind, then "total". Labels that could not be executed, and uses that `hasattr` is asked for, are left out."""
    by_kind = {kind: Score() for kind in (*KINDS, "total")}
    for each in judged:
        if not each.label.asked:
            by_kind[each.label.kind].add(each)
            by_kind["total"].add(each)
    return by_kind
