"""The tree and the packages that it is checked against, as one space of dotted names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import TypeVar, cast

from patcher.analysis.forest import Forest
from patcher.analysis.meaning import evaluation
from patcher.analysis.meaning.meanings import Meanings, TooFarError
from patcher.analysis.symbols import External, Resolution, Symbols
from patcher.analysis.target import Target
from patcher.analysis.values import Value

T = TypeVar("T")

_DEEPEST = 40
"""How many questions may wait for one another. A check of verl comes to 12."""
_MOST_STEPS = 20_000
"""How many questions the uses of one file may take together. A check of verl takes 600 at most."""

_MOST_KEPT = 100_000
"""How many answers are kept. A check of verl keeps 5,400."""


_TREE, _TARGET = 1, 2


class Universe:
    """One tree on one target. Everything is found when it is first asked for, and kept.

    What was found without asking the tree is kept with the target, for the other trees that are held against it.
    """

    def __init__(self, forest: Forest, target: Target) -> None:
        self._forest = forest
        self._target = target
        self._kept: dict[Hashable, tuple[object, int]] = {}
        self._active: set[Hashable] = set()
        self._cuts = 0
        self._asked = 0
        self._steps = 0
        self._generation = forest.generation
        self.top = forest.top
        """The import name of the tree's own package."""

    @property
    def forest(self) -> Forest:
        self._asked |= _TREE
        return self._forest

    @property
    def target(self) -> Target:
        self._asked |= _TARGET
        return self._target

    @property
    def names(self) -> Collection[str]:
        """The import names of the packages that are checked against, installed or not: the same on every release."""
        return self._target.against.keys()

    def begin(self) -> None:
        """From here on another file's uses are judged."""
        self._steps = 0

    def without_target(self, find: Callable[[], T]) -> tuple[T, bool]:
        """What `find` gives, and whether it was found without asking what the target's packages hold."""
        before, self._asked = self._asked, 0
        try:
            found = find()
        finally:
            asked, self._asked = self._asked, before | self._asked
        return found, not asked & _TARGET

    def evaluate(self, value: Value) -> Meanings:
        """What a value of the tree can be, by every way the code may take. Empty: `None`, nothing else."""
        return self.once(("value", value), lambda: evaluation.evaluate(self, value), ())

    def resolve(self, dotted: str) -> Resolution:
        """What a dotted name leads to, across packages."""
        package = dotted.partition(".")[0]
        if package not in self.names or package not in self.target.packages:
            return Resolution(External(dotted))
        return self.once(
            ("resolve", dotted),
            lambda: self._across(self.symbols(package).resolve(dotted)),
            Resolution(External(dotted)),
        )

    def symbols(self, module: str) -> Symbols:
        """The index of the package that a module belongs to; KeyError if it is not checked against."""
        return self.target.packages[module.partition(".")[0]]

    def once(self, key: Hashable, find: Callable[[], T], in_a_circle: T) -> T:
        """What `find` gives, kept under `key`; `in_a_circle` if it is asked for again while it is being found.

        What was found with the help of such an answer is kept only where the circle begins.

        Raises:
            TooFarError: too many questions wait for this one, or too many were asked since `begin`."""
        if not self._active and (self._generation != self._forest.generation or len(self._kept) > _MOST_KEPT):
            self._generation = self._forest.generation
            self._kept.clear()
        kept = self._kept.get(key) or cast("tuple[object, int] | None", self._target.kept.get(key))
        if kept is not None:
            self._asked |= kept[1]
            return cast("T", kept[0])
        if key in self._active:
            self._cuts += 1
            return in_a_circle
        self._steps += 1
        if len(self._active) >= _DEEPEST or self._steps > _MOST_STEPS:
            raise TooFarError("it leads too far")
        self._active.add(key)
        cuts, before, self._asked = self._cuts, self._asked, 0
        try:
            found = find()
        finally:
            self._active.discard(key)
            asked, self._asked = self._asked, before | self._asked
        if self._cuts == cuts or not self._active:
            (self._target.kept if asked == _TARGET else self._kept)[key] = (found, asked)
        return found

    def _across(self, found: Resolution) -> Resolution:
        """Go on in another package that is checked against, where a name leads out of the first."""
        if isinstance(found.definition, External):
            other = self.target.packages.get(found.definition.name.partition(".")[0])
            if other is not None:
                inner = self.resolve(found.definition.name)
                return Resolution(inner.definition, (*found.chain, *inner.chain), inner.alternatives)
        return found
