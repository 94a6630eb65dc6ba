"""The program that is checked: one tree, and the packages of one target, as one space of dotted names.

`Program` keeps every answer (a cache by question), and ends questions that go in a circle or lead too far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from functools import cached_property
from typing import TypeAlias, TypeVar, cast

from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.names import EvalContext, summaries_of
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.findings import Verdict
from patcher.analysis.meaning.annotations import annotated_as
from patcher.analysis.meaning.inference import element_of, result_of
from patcher.analysis.meaning.lookup import Base
from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Outside,
    SuperOf,
    TooFarError,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    union,
    without_absent,
)
from patcher.analysis.meaning.members import ancestry, lookup
from patcher.analysis.meaning.moves import moved_symbol
from patcher.analysis.project import Project
from patcher.analysis.symbols import Absent, Class, External, Module, Resolution, Symbols, Unknown, Variable
from patcher.analysis.target import Target
from patcher.analysis.uses import (
    Bound,
    Element,
    Instance,
    Member,
    Named,
    Opaque,
    Result,
    Subtype,
    Super,
    Union,
    Use,
    Value,
)

T = TypeVar("T")

_DEEPEST = 40
"""How many questions may wait for one another. A check of verl comes to 12."""
_MOST_STEPS = 20_000
"""How many questions the uses of one file may take together. A check of verl takes 600 at most."""

_MOST_KEPT = 100_000
"""How many answers are kept. A check of verl keeps 5,400."""


_TREE, _TARGET = 1, 2

Judge: TypeAlias = "Callable[[Use, Program], Verdict]"
"""Whether a use holds in a program. The rules are in a room above this one, so they are handed in."""


class Program:
    """One tree on one target. Everything is found when it is first asked for, and kept.

    What was found without asking the tree is kept with the target, for the other trees that are held against it.
    """

    def __init__(self, project: Project, target: Target, judge: Judge) -> None:
        """`judge` decides about single uses. Severity asks it: the handler of a `try` runs only where something in the
        `try` fails."""
        self.judge = judge
        self._project = project
        self._target = target
        self._kept: dict[Hashable, tuple[object, int]] = {}
        self._active: set[Hashable] = set()
        self._cuts = 0
        self._asked = 0
        self._steps = 0
        self._generation = project.generation
        self.owns = project.owns
        """Whether a dotted name is one of the tree's own."""

    @property
    def project(self) -> Project:
        self._asked |= _TREE
        return self._project

    @property
    def target(self) -> Target:
        self._asked |= _TARGET
        return self._target

    @property
    def names(self) -> Collection[str]:
        """The import names of the packages that are checked against, installed or not: the same on every release."""
        return self._target.against.keys()

    @cached_property
    def evaluator(self) -> Evaluator:
        """Decides the tests of the tree by what the target has."""
        return Evaluator(summaries_of(self._project), TargetQueries(self))

    def is_bound(self, bound: Bound, file: str) -> bool:
        """Whether a binding of a module's body may hold on the target: no test of versions around it fails.

        if version("vllm") == "0.5.4":
            from .vllm_v_0_5_4.llm import LLM
        else:
            from vllm import LLM
        """
        summary = summaries_of(self.project).file(file) if bound.conditions else None
        if summary is None:
            return True
        self.evaluator.asked = False
        answer = self.evaluator.runs(bound.conditions, EvalContext(summary))
        if self.evaluator.asked:
            self._asked |= _TARGET
        return answer is not False

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
        return self.once(("value", value), lambda: evaluate(self, value), ())

    # The functions of inference and of members ask each other through these: see `Lookup`.

    def lookup(self, of: Meaning, name: str) -> Meanings:
        """The attribute `name` of a meaning."""
        return lookup(self, of, name)

    def ancestry(self, owner: Class | TreeClass) -> tuple[Base, ...]:
        """A class and its bases, in the order in which Python asks them."""
        return ancestry(self, owner)

    def tree_member(self, module: str, name: str) -> Meanings:
        """What a name means in a module of the tree."""
        return self.once(("tree", module, name), lambda: _tree_member(self, module, name), ())

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

    def once(self, key: Hashable, find: Callable[[], T], if_circular: T) -> T:
        """What `find` gives, kept under `key`; `in_a_circle` if it is asked for again while it is being found.

        What was found with the help of such an answer is kept only where the circle begins.

        Raises:
            TooFarError: too many questions wait for this one, or too many were asked since `begin`."""
        # Answers may be dropped only while no question is under way.
        if not self._active and (self._generation != self._project.generation or len(self._kept) > _MOST_KEPT):
            self._generation = self._project.generation
            self._kept.clear()
        kept = self._kept.get(key) or cast("tuple[object, int] | None", self._target.kept.get(key))
        # An answer from the cache rests on what it rested on when it was found.
        if kept is not None:
            self._asked |= kept[1]
            return cast("T", kept[0])
        # `x = y; y = x`: the question is asked for while it is being answered.
        if key in self._active:
            self._cuts += 1
            return if_circular
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
            # What rests on the target alone serves every tree that is held against it, as in a row of the matrix.
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


_UNTOLD = Unknown("not followed")


def evaluate(program: Program, value: Value) -> Meanings:
    """What the value can be."""
    match value:
        case Named(dotted=dotted, on_trial=on_trial):
            found = named(program, dotted)
            # What the job uses of it fails as well, once the import is repaired.
            to = "" if on_trial else moved(program, dotted, found)
            return named(program, to) if to else found
        case Member(of=of, name=name):
            return union(*(lookup(program, one, name) for one in program.evaluate(of)))
        case Result(of=of):
            return union(*(result_of(program, one) for one in program.evaluate(of)))
        case Instance(of=of):
            return union(*(_annotated(program, one) for one in program.evaluate(of)))
        case Subtype(of=of):
            return tuple(TypeOf(one) if isinstance(one, Class | TreeClass) else one for one in program.evaluate(of))
        case Element(of=of):
            return union(*(element_of(program, one) for one in program.evaluate(of)))
        case Super(of=of):
            return tuple(
                SuperOf(one, InstanceOf(one)) for one in program.evaluate(of) if isinstance(one, Class | TreeClass)
            )
        case Union(values=values):
            return union(*(program.evaluate(one) for one in values))
        case Opaque():
            return (_UNTOLD,)


def named(program: Program, dotted: str) -> Meanings:
    """What a dotted name stands for: in the tree, or in a package."""
    package = dotted.partition(".")[0]
    if program.owns(package):
        return _in_tree(program, dotted)
    if package not in program.names:
        return (Outside(dotted),)
    if package not in program.target.packages:
        return (Absent("", package),)
    parts = dotted.split(".")
    symbols = program.target.packages[package]
    # `from a.b import c` takes the module a.b, even where a package binds its own b to something else.
    for length in range(max(len(parts) - 1, 1), 0, -1):
        root = symbols.modules.find(".".join(parts[:length]))
        if isinstance(root, Module):
            break
    found: Meanings = (root,) if isinstance(root, Module) else (Absent("", package),)
    for name in parts[length:]:
        found = union(*(lookup(program, one, name) for one in found))
    return found


def moved(program: Program, dotted: str, found: Meanings) -> str:
    """Where an import that fails (`found`: nothing of a package) would find the name now; "" if that is not clear."""
    module, _, name = dotted.rpartition(".")
    gone = bool(found) and all(isinstance(one, Absent) for one in found)
    return moved_symbol(program, module, name) if gone and module and not program.owns(module) else ""


def _annotated(program: Program, one: Meaning) -> Meanings:
    match one:
        case Class() | TreeClass():
            return (InstanceOf(one),)
        case TypeOf(of=of):
            return (InstanceOf(of),)
        case Variable(module=module, value=value) if value is not None:
            return annotated_as(program, value, module)
        case Outside() | Unknown() | InstanceOf() | Container() | Absent():
            return (one,)
        case _:
            return (_UNTOLD,)


def _in_tree(program: Program, dotted: str) -> Meanings:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if program.project.has_module(module):
            # Nothing of a package in question can come out of this module, so there is no need to read it.
            if length < len(parts) and not program.project.may_reexport(module):
                return (Outside(dotted),)
            found: Meanings = (TreeModule(module),)
            facts = program.project.module(module)
            rest = parts[length:]
            # `module.Class@12` and `module.Class.method` stand in the facts under their qualified names.
            for known in range(len(rest), 1, -1):
                inner = ".".join(rest[:known])
                if facts is not None and (own := facts.classes.get(inner)) is not None:
                    found, rest = (TreeClass(module, own),), rest[known:]
                    break
                if facts is not None and (function := facts.functions.get(inner)) is not None:
                    found, rest = (TreeFunction(function),), rest[known:]
                    break
            for name in rest:
                found = union(*(lookup(program, one, name) for one in found))
            return found
    return (_UNTOLD,)


def _tree_member(program: Program, module: str, name: str) -> Meanings:
    facts = program.project.module(module)
    if facts is None:
        inner = f"{module}.{name}"
        return (TreeModule(inner),) if program.project.has_module(inner) else (_UNTOLD,)
    found: list[Meanings] = []
    if name in facts.classes:
        found.append((TreeClass(module, facts.classes[name]),))
    if name in facts.functions:
        found.append((TreeFunction(facts.functions[name]),))
    bounds = facts.bindings.get(name, ())
    here = [bound for bound in bounds if program.is_bound(bound, facts.file)] if len(bounds) > 1 else bounds
    # No branch is for this release: the name is not bound, or by a star import, and nothing can be said of it.
    if bounds and not here and not found:
        return (_UNTOLD,)
    found += [program.evaluate(bound.value) for bound in here]
    if not found:
        for star in facts.stars:
            through = union(*(lookup(program, one, name) for one in named(program, star)))
            if through and not all(isinstance(one, Absent | Unknown) for one in through):
                return through
        if program.project.has_module(f"{module}.{name}"):
            return (TreeModule(f"{module}.{name}"),)
        return (_UNTOLD,)
    return without_absent(union(*found))
