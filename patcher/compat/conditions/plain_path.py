"""Which modules and functions of a tree the plain job runs on a target."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from patcher.compat.conditions.defaults import defaults_of, fields_of
from patcher.compat.conditions.evaluator import Evaluator
from patcher.compat.conditions.outside import Outside
from patcher.compat.conditions.plain_job import ENTRIES, Job
from patcher.compat.conditions.reach import Reach
from patcher.compat.conditions.tree import Tree, tree_of
from patcher.compat.forest import Forest
from patcher.compat.meaning import Universe
from patcher.compat.target import Target


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, forest: Forest) -> None:
        self.tree: Tree = tree_of(forest)
        self.job = Job(defaults_of(forest), fields_of(forest))
        nowhere = Universe(forest, Target({}, {}))
        self._blank = Evaluator(self.tree, Outside(nowhere), self.job)
        self._base = Reach(self.tree, self.job.choices)
        self._base.enter(ENTRIES)
        self._base.grow(self._blank, defer=True)
        self._widest: Reach | None = None

    def on(self, evaluator: Evaluator) -> Reach:
        """What runs on the evaluator's target."""
        found = self._base.copy()
        found.grow(evaluator, defer=False)
        return found

    @property
    def widest(self) -> Reach:
        """What runs on some target."""
        if self._widest is None:
            self._widest = self.on(self._blank)
        return self._widest


_PATHS: WeakKeyDictionary[Forest, PlainPath] = WeakKeyDictionary()


def plain_path(forest: Forest) -> PlainPath:
    """The plain path of a tree, kept as long as the forest lives."""
    if forest not in _PATHS:
        _PATHS[forest] = PlainPath(forest)
    return _PATHS[forest]
