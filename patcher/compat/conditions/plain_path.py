"""Which modules and functions of a tree the plain job runs on a target."""

from __future__ import annotations

from patcher.compat.conditions.defaults import defaults_of, fields_of
from patcher.compat.conditions.evaluator import Evaluator
from patcher.compat.conditions.outside import Outside
from patcher.compat.conditions.plain_job import ENTRIES, Job
from patcher.compat.conditions.reach import Reach
from patcher.compat.conditions.tree import Tree, tree_of
from patcher.compat.forest import Forest
from patcher.compat.outlining.outline import Outline


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, forest: Forest, like: PlainPath | None = None) -> None:
        """`like`: that of a variant of the tree with the same functions and classes, which is taken over."""
        self.tree: Tree = tree_of(forest)
        self.job: Job = like.job if like is not None else Job(defaults_of(forest), fields_of(forest))
        self._blank: Evaluator = like._blank if like is not None else Evaluator(self.tree, Outside(None), self.job)
        self._base: Reach = like._base if like is not None else self._begun()
        self._widest: Reach | None = None

    def _begun(self) -> Reach:
        reach = Reach(self.tree, self.job.choices)
        reach.enter(ENTRIES)
        reach.grow(self._blank, defer=True)
        return reach

    def on(self, evaluator: Evaluator) -> Reach:
        """What runs on the evaluator's target."""
        found = self._base.copy(self.tree)
        found.grow(evaluator, defer=False)
        return found

    @property
    def widest(self) -> Reach:
        """What runs on some target."""
        if self._widest is None:
            self._widest = self.on(self._blank)
        return self._widest


def plain_path(forest: Forest) -> PlainPath:
    """The plain path of a tree, kept as long as the forest lives."""
    path = forest.kept.get("plain path")
    if not isinstance(path, PlainPath):
        origin = forest.variant_of
        like = plain_path(origin) if origin is not None and _are_alike(forest, origin) else None
        path = forest.kept["plain path"] = PlainPath(forest, like)
    return path


def _are_alike(forest: Forest, origin: Forest) -> bool:
    """Whether a variant of a tree has the same modules, functions and classes."""
    one, other = tree_of(forest), tree_of(origin)
    for file in forest.texts:
        if file.endswith(".py"):
            first, second = one.file(file), other.file(file)
            if first is None or second is None or _names(first) != _names(second):
                return False
        elif forest.content(file) != origin.content(file):
            return False
    return True


def _names(outline: Outline) -> tuple[object, ...]:
    return (outline.bodies.keys(), outline.classes.keys())
