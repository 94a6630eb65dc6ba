"""How much a broken use matters: what guards it, and whether the plain job runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cached_property
from weakref import ref

from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.job import name_words
from patcher.analysis.conditions.names import Place, tree_of
from patcher.analysis.conditions.prefetch import Promise, ahead
from patcher.analysis.conditions.reachability import Node, Ways, job_of, plain_path
from patcher.analysis.conditions.target_queries import Outside
from patcher.analysis.conditions.terms import EXCEPTIONS, FAILED_IMPORT
from patcher.analysis.findings import Broken, FindingKind, Problem, Severity
from patcher.analysis.meaning import Universe
from patcher.analysis.meaning.program import Judge, Target
from patcher.analysis.project import Forest
from patcher.analysis.uses import (
    CallOf,
    Condition,
    ConfigKey,
    EnvironmentVariable,
    ImportOf,
    MemberOf,
    Otherwise,
    Use,
    When,
)


class Guards:
    """Answers for one universe; everything is found when first asked for."""

    def __init__(self, universe: Universe) -> None:
        self._universe = ref(universe)
        self._forest, self._target, self._judge = universe.forest, universe.target, universe.judge
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
            universe = Universe(origin, self._target, self._judge)
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
            universe = self._universe()
            assert universe is not None, "guards outlived their universe"
            facts = self._forest.facts(file)
            found = []
            for use in facts.uses if facts is not None else ():
                if use.context.caught and isinstance(use.need, ImportOf | MemberOf | CallOf):
                    match universe.judge(use, universe):
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
def ways_ahead(forest: Forest, target: Target, judge: Judge) -> Iterator[None]:
    """Have another process find what the plain job runs, for whoever asks for it in here."""

    def work() -> Ways:
        universe = Universe(forest, target, judge)
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


_CONFIGURED = frozenset({"config", "cfg", "environ", "getenv", "args", "kwargs", "enable", "enabled", "use"})


def severity_of(use: Use, problem: Problem, universe: Universe) -> Severity:
    """break, optional, guarded or inert."""
    if isinstance(use.need, EnvironmentVariable) or problem.kind in ("env-removed", "env-unknown"):
        return "inert"
    if isinstance(use.need, ConfigKey) and use.need.sign in ("+", "++"):
        return "inert"
    if not use.file.endswith(".py"):
        return "break"
    guards = guards_of(universe)
    if _is_guarded(use, problem, guards):
        return "guarded"
    outline = guards.tree.file(use.file)
    node = (use.file, use.context.function)
    if outline is None or not guards.runs_plainly(node):
        return "guarded" if outline is not None and guards.runs_somewhere(node) else "optional"
    answer = guards.runs(use, guards.plain)
    if answer is False or (answer is None and _is_feature(use)):
        return "optional"
    return "break"


def severity_in_place(use: Use, problem: Problem, universe: Universe) -> Severity:
    """guarded, or optional for all else: by what stands around the use alone, which costs little."""
    return "guarded" if use.file.endswith(".py") and _is_guarded(use, problem, guards_of(universe)) else "optional"


def _is_guarded(use: Use, problem: Problem, guards: Guards) -> bool:
    if covers(use.context.caught, problem.kind, use) or guards.runs(use, guards.target) is False:
        return True
    return any(_asks_for(one, problem) for one in use.context.conditions)


def _asks_for(condition: Condition, problem: Problem) -> bool:
    """Whether a test makes sure of the very name that is missing: `hasattr(x, "n")`, `"n" in parameters`."""
    if not isinstance(condition, When):
        return False
    name = problem.symbol.rpartition("(")[2].rstrip(")") if "(" in problem.symbol else problem.symbol.rpartition(".")[2]
    return _makes_sure(condition.test, name, condition.holds)


def _makes_sure(test: ast.expr, name: str, holds: bool) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _makes_sure(inner, name, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return any(_makes_sure(value, name, holds) for value in values)
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[_, ast.Constant(value=asked), *_]):
            return holds and asked == name
        case ast.Compare(left=ast.Constant(value=asked), ops=[op]) if asked == name:
            return isinstance(op, ast.In) is holds
        case ast.Compare(left=ast.Call() as inner, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant()]):
            return _makes_sure(inner, name, isinstance(op, ast.IsNot) is holds)
        case _:
            return False


def _is_feature(use: Use) -> bool:
    """Whether a test around the use that cannot be told asks for a setting."""
    for condition in use.context.conditions:
        if isinstance(condition, When):
            for node in ast.walk(condition.test):
                name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                if not name_words(name).isdisjoint(_CONFIGURED):
                    return True
    return False
