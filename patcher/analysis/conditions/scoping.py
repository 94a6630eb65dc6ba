"""What names of the tree stand for, in modules, functions and classes."""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.analysis.conditions.outside import Outside
from patcher.analysis.conditions.plain_job import Job
from patcher.analysis.conditions.terms import UNKNOWN, Known, Raised, Setting, Term, Thing, Unknown, truth
from patcher.analysis.conditions.tree import Tree
from patcher.analysis.model import Condition
from patcher.analysis.outlining.outline import Assigned, Body, Import, Outline

_DEEPEST = 40
"""How many names may wait for one another's values."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where an expression stands: in a function of a file, with what is known of local names."""

    outline: Outline
    function: str = ""
    local: Mapping[str, Term] = field(default_factory=dict)

    @property
    def body(self) -> Body | None:
        return self.outline.bodies.get(self.function)


class Scoping(ABC):
    """Finds what names stand for; what is assigned to them is evaluated by whoever fills this in."""

    def __init__(self, tree: Tree, outside: Outside, job: Job | None) -> None:
        self.tree = tree
        self.outside = outside
        self.job = job
        self.asked = False
        """Whether the answers since it was last reset rest on the target."""
        self.active: set[tuple[str, str, str]] = set()
        """What is being worked out: files, functions and names."""
        self._names: dict[tuple[str, str, str], tuple[Term, bool]] = {}

    @abstractmethod
    def term(self, node: ast.expr, place: Place) -> Term:
        """What an expression comes to. Raises `Raised`."""

    @abstractmethod
    def runs(self, conditions: tuple[Condition, ...], place: Place) -> bool | None:
        """Whether code under these conditions runs; None if that cannot be told."""

    @abstractmethod
    def attribute_of(self, term: Term, name: str) -> Term:
        """The attribute `name` of what a term stands for."""

    def settled(self, term: Term) -> Term:
        """A setting's value in its place."""
        if isinstance(term, Setting):
            return self.job.value(term) if self.job is not None else UNKNOWN
        return term

    def name(self, name: str, place: Place) -> Term:
        """What a name stands for in a place."""
        if name in place.local:
            return place.local[name]
        function = place.function
        while function:
            body = place.outline.bodies.get(function)
            if body is not None:
                inner = Place(place.outline, function)
                if name in body.assigned:
                    return self._bound((place.outline.file, function, name), body.assigned[name], inner)
                if name in body.parameters:
                    return self._parameter(body, name)
            function = function.rpartition(".")[0]
        return self.member(place.outline, name)

    def member(self, outline: Outline, name: str) -> Term:
        """What a name stands for at a module's top level."""
        for here in self.tree.giving(name, outline):
            if name not in here.bodies[""].assigned:
                return Thing(f"{here.module}.{name}")
            found = self._bound((here.file, "", name), here.bodies[""].assigned[name], Place(here))
            if here is outline or not isinstance(found, Unknown):
                return found
        return Thing(f"builtins.{name}") if hasattr(builtins, name) else UNKNOWN

    def _parameter(self, body: Body, name: str) -> Term:
        if self.job is None:
            return UNKNOWN
        if (fixed := self.job.fixed(name)) is not None:
            return fixed
        default = body.defaults.get(name)
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            return Known(default.value)
        return self.job.setting(name, body.annotations.get(name))

    def _bound(self, key: tuple[str, str, str], ways: list[Assigned], place: Place) -> Term:
        """The value of a name that is assigned in these ways, a later one in the place of an earlier."""
        if key in self._names:
            known, asked = self._names[key]
            self.asked = self.asked or asked
            return known
        if key in self.active or len(self.active) >= _DEEPEST:
            return UNKNOWN
        self.active.add(key)
        before, self.asked = self.asked, False
        try:
            term = self._merged(key, ways, place)
        finally:
            self.active.discard(key)
            asked, self.asked = self.asked, self.asked or before
        self._names[key] = (term, asked)
        return term

    def _merged(self, key: tuple[str, str, str], ways: list[Assigned], place: Place) -> Term:
        found: list[Term] = []
        for way in ways:
            answer = self.runs(way.conditions, place)
            if answer is False:
                continue
            term = self._assigned(way, place)
            found = [term] if answer else [*found, term]
        if not found and self.job is not None and (fixed := self.job.fixed(key[2])) is not None:
            return fixed
        if found and all(term == found[0] for term in found):
            term = found[0]
        else:
            answers = {truth(self.settled(term)) for term in found}
            term = Known(answers.pop()) if len(answers) == 1 and None not in answers and self.job else UNKNOWN
        if isinstance(term, Unknown) and self.job is not None and (fixed := self.job.fixed(key[2])) is not None:
            return fixed
        return term

    def _assigned(self, way: Assigned, place: Place) -> Term:
        match way.value:
            case None:
                return UNKNOWN
            case Import() as imported:
                return self.dotted(imported.dotted)
            case expression:
                try:
                    return self.term(expression, place)
                except Raised:
                    return UNKNOWN

    def dotted(self, dotted: str) -> Term:
        """What an absolute dotted name stands for."""
        if self.job is not None and (fixed := self.job.fixed_name(dotted)) is not None:
            return fixed
        split = self.tree.split(dotted)
        if split is None:
            return self.outside.thing(dotted, self)
        outline, rest = split
        if not rest:
            return Thing(dotted)
        first, _, more = rest.partition(".")
        found = self.member(outline, first)
        if isinstance(found, Unknown) and self.tree.module(f"{outline.module}.{first}") is not None:
            return Thing(dotted)
        for name in filter(None, more.split(".")):
            found = self.attribute_of(found, name)
        return found

    def own(self, outline: Outline, owner: str, name: str) -> Term:
        """`self.name` in a class."""
        waiting, seen = [(outline, owner)], set()
        while waiting:
            where, current = waiting.pop(0)
            family = where.classes.get(current)
            if family is None or (where.file, current) in seen:
                continue
            seen.add((where.file, current))
            if name in family.attributes:
                key = (where.file, current, f"self.{name}")
                if key in self.active or len(self.active) >= _DEEPEST:
                    return UNKNOWN
                self.active.add(key)
                try:
                    terms = [
                        self._assigned(way, Place(where, function))
                        for function, way in family.attributes[name]
                        if self.runs(way.conditions, Place(where, function)) is not False
                    ]
                finally:
                    self.active.discard(key)
                if terms and all(term == terms[0] for term in terms) and not isinstance(terms[0], Unknown):
                    return terms[0]
                break
            for base in family.bases:
                found = self._base(where, base)
                if found is not None:
                    waiting.append(found)
        return self.job.setting(name, None) if self.job is not None else UNKNOWN

    def class_attribute(self, outline: Outline, owner: str, name: str) -> Term:
        """`Class.name`: a constant of the class body; a member of an enumeration stays a thing."""
        family = outline.classes.get(owner)
        ways = family.attributes.get(name, []) if family is not None else []
        if family is not None and len(ways) == 1 and not any("Enum" in base for base in family.bases):
            found = self._assigned(ways[0][1], Place(outline))
            if not isinstance(found, Unknown):
                return found
        return Thing(f"{outline.module}.{owner}.{name}")

    def _base(self, outline: Outline, written: str) -> tuple[Outline, str] | None:
        term = self.member(outline, written) if "." not in written else UNKNOWN
        if isinstance(term, Thing) and (split := self.tree.split(term.dotted)) is not None:
            return split
        return None


def class_of(outline: Outline, body: Body) -> str:
    """The class whose method a function is, or is nested in."""
    name = body.qualname
    while name:
        found = outline.bodies.get(name)
        if found is not None and found.owner:
            return found.owner
        name = name.rpartition(".")[0]
    return ""
