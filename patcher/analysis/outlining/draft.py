"""A step of an outline while it is being drawn."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from patcher.analysis.model import Condition
from patcher.analysis.outlining.outline import Import, Step


@dataclass(slots=True, eq=False)
class Draft:
    """What a step imports and mentions, as often as it does."""

    conditions: tuple[Condition, ...]
    imports: list[Import] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    orderings: list[ast.Compare] = field(default_factory=list)

    def step(self) -> Step:
        """The step, each mention once."""
        return Step(
            self.conditions,
            tuple(self.imports),
            tuple(dict.fromkeys(self.called)),
            tuple(dict.fromkeys(self.named)),
            tuple(dict.fromkeys(self.texts)),
            tuple(self.orderings),
        )
