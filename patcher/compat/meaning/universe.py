"""The tree and the packages that it is checked against, as one space of dotted names."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from patcher.compat.forest import Forest
from patcher.compat.meaning import evaluation
from patcher.compat.meaning.meanings import Meanings
from patcher.compat.target import Target
from patcher.compat.values import Value
from patcher.symbols import External, Resolution, Symbols

T = TypeVar("T")


class Universe:
    """One tree on one target. Everything is found when it is first asked for, and kept."""

    def __init__(self, forest: Forest, target: Target) -> None:
        self.forest = forest
        self.target = target
        self._kept: dict[Hashable, object] = {}
        self._active: set[Hashable] = set()
        self._cuts = 0

    def evaluate(self, value: Value) -> Meanings:
        """What a value of the tree can be, by every way the code may take. Empty: `None`, nothing else."""
        return self.once(("value", value), lambda: evaluation.evaluate(self, value), ())

    def resolve(self, dotted: str) -> Resolution:
        """What a dotted name leads to, across packages."""
        package = dotted.partition(".")[0]
        symbols = self.target.packages.get(package)
        if symbols is None:
            return Resolution(External(dotted))
        return self.once(
            ("resolve", dotted), lambda: self._across(symbols.resolve(dotted)), Resolution(External(dotted))
        )

    def symbols(self, module: str) -> Symbols:
        """The index of the package that a module belongs to; KeyError if it is not checked against."""
        return self.target.packages[module.partition(".")[0]]

    def once(self, key: Hashable, find: Callable[[], T], in_a_circle: T) -> T:
        """What `find` gives, kept under `key`; `in_a_circle` if it is asked for again while it is being found.

        What was found with the help of such an answer is kept only where the circle begins."""
        if key in self._kept:
            return cast("T", self._kept[key])
        if key in self._active:
            self._cuts += 1
            return in_a_circle
        self._active.add(key)
        cuts = self._cuts
        try:
            found = find()
        finally:
            self._active.discard(key)
        if self._cuts == cuts or not self._active:
            self._kept[key] = found
        return found

    def _across(self, found: Resolution) -> Resolution:
        """Go on in another package that is checked against, where a name leads out of the first."""
        if isinstance(found.definition, External):
            other = self.target.packages.get(found.definition.name.partition(".")[0])
            if other is not None:
                inner = self.resolve(found.definition.name)
                return Resolution(inner.definition, (*found.chain, *inner.chain), inner.alternatives)
        return found
