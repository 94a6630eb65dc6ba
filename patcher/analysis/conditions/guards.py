"""What guards a use: tests of versions and features, `try`, other uses that fail first."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cached_property
from weakref import ref

from patcher.analysis.conditions.ahead import Promise, ahead
from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.outside import Outside
from patcher.analysis.conditions.plain_path import Node, Ways, job_of, plain_path
from patcher.analysis.conditions.scoping import Place
from patcher.analysis.conditions.terms import EXCEPTIONS, FAILED_IMPORT
from patcher.analysis.conditions.tree import tree_of
from patcher.analysis.forest import Forest
from patcher.analysis.meaning import Universe
from patcher.analysis.model import Broken, CallOf, Condition, FindingKind, ImportOf, MemberOf, Otherwise, Problem, Use
from patcher.analysis.target import Target


class Guards:
    """Answers for one universe; everything is found when first asked for."""

    def __init__(self, universe: Universe) -> None:
        self._universe = ref(universe)
        self._forest, self._target = universe.forest, universe.target
        self.tree = tree_of(universe.forest)
        self._outside = Outside(universe)
        self.target = Evaluator(self.tree, self._outside)
        self._broken: dict[str, list[tuple[Use, tuple[Problem, ...]]]] = {}

    @cached_property
    def plain(self) -> Evaluator:
        """On the same target, by what is known of the plain job too."""
        return Evaluator(self.tree, self._outside, job_of(self._forest))

    @cached_property
    def ways(self) -> Ways:
        """What the plain job runs of the tree as it is, on this target."""
        origin = self._forest.origin
        if origin is not self._forest:
            universe = Universe(origin, self._target)
            return guards_of(universe).ways
        known = self._target.kept
        found = known.get(("ways", origin))
        if isinstance(found, Promise):
            found = found.get()
        if not isinstance(found, Ways):
            found = plain_path(origin).on(self.plain)
        known["ways", origin] = found
        return found

    def runs_plainly(self, node: Node) -> bool:
        """Whether the plain job runs a function on this target."""
        return self._is_among(self.ways.here, node)

    def runs_somewhere(self, node: Node) -> bool:
        """Whether the plain job runs it on some target."""
        return self._is_among(self.ways.anywhere, node)

    def _is_among(self, nodes: AbstractSet[Node], node: Node) -> bool:
        """What a record brings into a file is taken to run where the file's own code does."""
        if node in nodes or self._forest.origin is self._forest:
            return node in nodes
        before = tree_of(self._forest.origin).file(node[0])
        return (before is None or node[1] not in before.bodies) and (node[0], "") in nodes

    def runs(self, use: Use, evaluator: Evaluator) -> bool | None:
        """Whether the conditions of a use hold."""
        outline = self.tree.file(use.file)
        if outline is None:
            return None
        place = Place(outline, use.context.function)
        sure: bool | None = True
        body = outline.bodies.get(use.context.function)
        around = body.conditions if body is not None else ()
        for condition in (*around, *use.context.conditions):
            answer = self._holds(condition, use, evaluator, place)
            if answer is False:
                return False
            sure = sure if answer else None
        return sure

    def _holds(self, condition: Condition, use: Use, evaluator: Evaluator, place: Place) -> bool | None:
        if not isinstance(condition, Otherwise):
            return evaluator.runs((condition,), place)
        sure: bool | None = None
        if use.file.endswith(".py"):
            sure = evaluator.fails(condition, place.outline)
            if sure:
                return True
        for other, problems in self._failing(use.file, condition):
            for problem in problems:
                if covers(condition.catches, problem.kind, other):
                    return True
        return False if self._all_decided(use.file, condition) else sure

    def _failing(self, file: str, condition: Otherwise) -> list[tuple[Use, tuple[Problem, ...]]]:
        return [found for found in self._judged(file) if condition.first <= found[0].line <= condition.last]

    def _judged(self, file: str) -> list[tuple[Use, tuple[Problem, ...]]]:
        """The broken uses that stand in a `try` of the file."""
        if file not in self._broken:
            from patcher.check.rules import judge

            universe = self._universe()
            assert universe is not None, "guards outlived their universe"
            facts = self._forest.facts(file)
            found = []
            for use in facts.uses if facts is not None else ():
                if use.context.caught and isinstance(use.need, ImportOf | MemberOf | CallOf):
                    match judge(use, universe):
                        case Broken(problems=problems):
                            found.append((use, problems))
                        case _:
                            pass
            self._broken[file] = found
        return self._broken[file]

    def _all_decided(self, file: str, condition: Otherwise) -> bool:
        """Whether the `try` holds uses of the target and none of them fails: then the handler waits in vain."""
        facts = self._forest.facts(file)
        uses = facts.uses if facts is not None else ()
        return any(
            condition.first <= use.line <= condition.last
            and isinstance(use.need, ImportOf)
            and use.need.module.partition(".")[0] in self._target.against
            for use in uses
        )


def guards_of(universe: Universe) -> Guards:
    """The guards of a universe, kept as long as it lives."""
    found = universe.once(("guards",), lambda: Guards(universe), None)
    assert found is not None
    return found


@contextmanager
def ways_ahead(forest: Forest, target: Target) -> Iterator[None]:
    """Have another process find what the plain job runs, for whoever asks for it in here."""

    def work() -> Ways:
        universe = Universe(forest, target)
        return guards_of(universe).ways

    with ahead(work) as promise:
        if promise is not None:
            target.kept["ways", forest] = promise
            forest.outlined = False
        yield


def covers(catches: tuple[str, ...], kind: FindingKind, use: Use) -> bool:
    """Whether one of the exceptions catches what a problem of this kind raises."""
    names = {name.rpartition(".")[2] for name in catches}
    return not names.isdisjoint(_raised(kind, use))


def _raised(kind: FindingKind, use: Use) -> tuple[str, ...]:
    match kind:
        case "module-removed" | "module-moved":
            return FAILED_IMPORT
        case "symbol-removed" | "symbol-moved" if isinstance(use.need, ImportOf):
            return FAILED_IMPORT if use.need.name is None else FAILED_IMPORT[1:]
        case "symbol-removed" | "symbol-moved" | "attribute-removed":
            return EXCEPTIONS["AttributeError"]
        case "argument-removed" | "argument-required" | "argument-shifted":
            return EXCEPTIONS["TypeError"]
        case _:
            return ()
