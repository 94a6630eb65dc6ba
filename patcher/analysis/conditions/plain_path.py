"""Which modules and functions of a tree the plain job runs on a target."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.conditions.defaults import defaults_of, fields_of
from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.outside import Outside
from patcher.analysis.conditions.plain_job import ENTRIES, Job
from patcher.analysis.conditions.reach import Reach
from patcher.analysis.conditions.tree import Tree, tree_of
from patcher.analysis.forest import Forest

Node: TypeAlias = "tuple[str, str]"
"""A file and the qualified name of a function or class in it; "" for what runs on import."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What the plain job runs on one target, and what on some target."""

    here: AbstractSet[Node]
    anywhere: AbstractSet[Node]


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, forest: Forest) -> None:
        self.tree: Tree = tree_of(forest)
        self._blank = Evaluator(self.tree, Outside(None), job_of(forest))
        self._base = Reach(self.tree, job_of(forest).choices)
        self._base.enter(ENTRIES)
        self._base.grow(self._blank, defer=True)
        self._widest: AbstractSet[Node] | None = None

    def on(self, evaluator: Evaluator) -> Ways:
        """What runs on the evaluator's target."""
        if self._widest is None:
            self._widest = self._grown(self._blank)
        return Ways(self._grown(evaluator), self._widest)

    def _grown(self, evaluator: Evaluator) -> AbstractSet[Node]:
        found = self._base.copy()
        found.grow(evaluator, defer=False)
        return found.bodies


def plain_path(forest: Forest) -> PlainPath:
    """The plain path of a tree, kept as long as the forest lives."""
    path = forest.kept.get("plain path")
    if not isinstance(path, PlainPath):
        path = forest.kept["plain path"] = PlainPath(forest)
    return path


def job_of(forest: Forest) -> Job:
    """The plain job of a tree, with the tree's own defaults."""
    job = forest.kept.get("plain job")
    if not isinstance(job, Job):
        job = forest.kept["plain job"] = Job(defaults_of(forest), fields_of(forest))
    return job
