"""What an expression of the tree comes to on one target."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.compat.conditions.operators import BINARY, COMPARISONS
from patcher.compat.conditions.outline import Assigned, Body, Import, Outline
from patcher.compat.conditions.outside import Outside
from patcher.compat.conditions.plain_job import Job
from patcher.compat.conditions.terms import (
    OFF,
    UNKNOWN,
    Known,
    Method,
    Names,
    Off,
    Raised,
    Setting,
    Signed,
    Term,
    Thing,
    Unknown,
    truth,
)
from patcher.compat.conditions.tree import Tree
from patcher.compat.model import Condition, Otherwise, When

_DEPTH = 24


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where an expression stands: in a function of a file, with what is known of local names."""

    outline: Outline
    function: str = ""
    local: Mapping[str, Term] = field(default_factory=dict)

    @property
    def body(self) -> Body | None:
        return self.outline.bodies.get(self.function)


class Evaluator:
    """Evaluates on one target; with a `job`, also by what is known of that job.

    `asked` tells whether the answers since it was last reset rest on the target.
    """

    def __init__(self, tree: Tree, outside: Outside, job: Job | None = None) -> None:
        self.tree = tree
        self.outside = outside
        self.job = job
        self.asked = False
        self._depth = 0
        self._active: set[tuple[str, str, str]] = set()
        self._names: dict[tuple[str, str, str], tuple[Term, bool]] = {}
        self._answers: dict[tuple[int, str], tuple[ast.expr, bool | None, bool]] = {}

    def holds(self, test: ast.expr, place: Place) -> bool | None:
        """Whether a test is true on the target; None if that cannot be told."""
        key = (id(test), f"{place.outline.file}:{place.function}")
        if not place.local and key in self._answers:
            _, answer, asked = self._answers[key]
            self.asked = self.asked or asked
            return answer
        before, self.asked = self.asked, False
        try:
            answer = truth(self._settled(self.term(test, place)))
        except Raised:
            answer = False
        if not place.local and not self._active and self._depth == 0:
            self._answers[key] = (test, answer, self.asked)
        self.asked = self.asked or before
        return answer

    def runs(self, conditions: tuple[Condition, ...], place: Place) -> bool | None:
        """Whether code under these conditions runs."""
        sure: bool | None = True
        for condition in conditions:
            match condition:
                case When(test=test, holds=wanted):
                    answer = self.holds(test, place)
                    answer = answer if answer is None or wanted else not answer
                case Otherwise():
                    answer = self.fails(condition, place.outline)
            if answer is False:
                return False
            sure = sure if answer else None
        return sure

    def fails(self, condition: Otherwise, outline: Outline) -> bool | None:
        """Whether one of the imports in the lines of a `try` fails and is caught: its handler runs."""
        sure: bool | None = False
        for body in outline.bodies.values():
            if not (body.first <= condition.first and condition.last <= body.last):
                continue
            for step in body.steps:
                for one in step.imports:
                    if not condition.first <= one.line <= condition.last:
                        continue
                    self.asked = True
                    answer = self._import_fails(one)
                    if answer and any(name in condition.catches for name in self.outside.raised_by(one)):
                        return True
                    sure = sure if answer is False else None
        return sure

    def _import_fails(self, one: Import) -> bool | None:
        if self.tree.split(one.module) is not None:
            return None
        present = self.outside.has_import(one)
        return None if present is None else not present

    def term(self, node: ast.expr, place: Place) -> Term:
        """What an expression comes to. Raises `Raised`."""
        if self._depth > _DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            found = self._term(node, place)
        finally:
            self._depth -= 1
        if self.job is not None and isinstance(found, Unknown) and self.job.is_off(node):
            return OFF
        return found

    def _term(self, node: ast.expr, place: Place) -> Term:
        match node:
            case ast.Constant(value=value):
                return Known(value)
            case ast.Name(id=name):
                return self.name(name, place)
            case ast.Attribute(value=value, attr=name):
                return self._attribute(node, value, name, place)
            case ast.Call():
                return self._call(node, place)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return self._compare(left, ops, rights, place)
            case ast.BoolOp(op=op, values=values):
                return self._bool(op, values, place)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                answer = truth(self._settled(self.term(operand, place)))
                return UNKNOWN if answer is None else Known(not answer)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._settled(self.term(operand, place))
                return Known(-inner.value) if isinstance(inner, Known) and isinstance(inner.value, int) else UNKNOWN
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._sequence(node, parts, place)
            case ast.Subscript(value=value, slice=key):
                return self._item(self.term(value, place), key, place)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                answer = truth(self._settled(self.term(test, place)))
                if answer is None:
                    one, other = self.term(body, place), self.term(orelse, place)
                    return one if one == other else UNKNOWN
                return self.term(body if answer else orelse, place)
            case ast.NamedExpr(value=value):
                return self.term(value, place)
            case ast.Await(value=value):
                return self.term(value, place)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                return self._comprehension(node, place)
            case ast.BinOp(left=left, op=op, right=right):
                one, other = self._settled(self.term(left, place)), self._settled(self.term(right, place))
                if isinstance(one, Known) and isinstance(other, Known) and type(op) in BINARY:
                    return BINARY[type(op)](one, other)
                return UNKNOWN
            case _:
                return UNKNOWN

    # names

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
        place = Place(outline)
        if name in outline.bodies[""].assigned:
            return self._bound((outline.file, "", name), outline.bodies[""].assigned[name], place)
        if name in outline.bodies or name in outline.classes:
            return Thing(f"{outline.module}.{name}")
        for star in outline.stars:
            if (there := self.tree.module(star)) is not None and there is not outline:
                found = self.member(there, name)
                if not isinstance(found, Unknown):
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
        if key in self._active:
            return UNKNOWN
        self._active.add(key)
        before, self.asked = self.asked, False
        try:
            term = self._merged(key, ways, place)
        finally:
            self._active.discard(key)
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
            answers = {truth(self._settled(term)) for term in found}
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
            found = self._attribute_of(found, name)
        return found

    # attributes and items

    def _attribute(self, node: ast.expr, value: ast.expr, name: str, place: Place) -> Term:
        if self.job is not None and (fixed := self.job.fixed(name)) is not None:
            return fixed
        if isinstance(value, ast.Name) and value.id == "self" and (body := place.body) is not None:
            return self._own(place.outline, _class_of(place.outline, body), name)
        return self._attribute_of(self.term(value, place), name)

    def _own(self, outline: Outline, owner: str, name: str) -> Term:
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
                if key in self._active:
                    return UNKNOWN
                self._active.add(key)
                try:
                    terms = [
                        self._assigned(way, Place(where, function))
                        for function, way in family.attributes[name]
                        if self.runs(way.conditions, Place(where, function)) is not False
                    ]
                finally:
                    self._active.discard(key)
                if terms and all(term == terms[0] for term in terms) and not isinstance(terms[0], Unknown):
                    return terms[0]
                break
            for base in family.bases:
                found = self._base(where, base)
                if found is not None:
                    waiting.append(found)
        return self.job.setting(name, None) if self.job is not None else UNKNOWN

    def _class_attribute(self, outline: Outline, owner: str, name: str) -> Term:
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

    def _attribute_of(self, term: Term, name: str) -> Term:
        match term:
            case Thing(dotted=dotted):
                split = self.tree.split(dotted)
                if split is None or not split[1]:
                    return self.dotted(f"{dotted}.{name}")
                return self._class_attribute(split[0], split[1], name)
            case Known():
                return self.outside.known_attribute(term, name)
            case Signed(of=thing):
                self.asked = True
                return self.outside.parameters(thing) if name in ("parameters", "args", "kwonlyargs") else UNKNOWN
            case Names():
                return Method(Known(term), name)
            case Setting(path=path, hints=hints):
                return Setting((*path, name), hints)
            case Off():
                return OFF
            case _:
                return UNKNOWN

    def _item(self, of: Term, key: ast.expr, place: Place) -> Term:
        if isinstance(of, Setting):
            name = self.term(key, place)
            return (
                Setting((*of.path, name.value), of.hints)
                if isinstance(name, Known) and isinstance(name.value, str)
                else UNKNOWN
            )
        of = self._settled(of)
        if isinstance(of, Off):
            return OFF
        if not isinstance(of, Known):
            return UNKNOWN
        index: object
        if isinstance(key, ast.Slice):
            bounds = [None if part is None else self.term(part, place) for part in (key.lower, key.upper, key.step)]
            if not all(part is None or isinstance(part, Known) for part in bounds):
                return UNKNOWN
            index = slice(*(part.value if isinstance(part, Known) else None for part in bounds))
        else:
            found = self._settled(self.term(key, place))
            if not isinstance(found, Known):
                return UNKNOWN
            index = found.value
        try:
            return Known(of.value[index], of.package)  # type: ignore[index]
        except Exception:
            return UNKNOWN

    # operators

    def _settled(self, term: Term) -> Term:
        """A setting's value in its place."""
        if isinstance(term, Setting):
            return self.job.value(term) if self.job is not None else UNKNOWN
        return term

    def _sequence(self, node: ast.expr, parts: list[ast.expr], place: Place) -> Term:
        terms = [self._settled(self.term(part, place)) for part in parts]
        if not all(isinstance(term, Known) for term in terms):
            return UNKNOWN
        values = [term.value for term in terms if isinstance(term, Known)]
        package = next((term.package for term in terms if isinstance(term, Known) and term.package), "")
        try:
            return Known(set(values) if isinstance(node, ast.Set) else tuple(values), package)
        except TypeError:
            return UNKNOWN

    def _bool(self, op: ast.boolop, values: list[ast.expr], place: Place) -> Term:
        decisive = isinstance(op, ast.Or)
        unsure = False
        term: Term = UNKNOWN
        for value in values:
            try:
                term = self._settled(self.term(value, place))
            except Raised:
                if not unsure:
                    raise
                return UNKNOWN
            answer = truth(term)
            if answer is decisive:
                return Known(decisive) if unsure else term
            unsure = unsure or answer is None
        return UNKNOWN if unsure else term

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr], place: Place) -> Term:
        one = self._settled(self.term(left, place))
        sure = True
        for op, right in zip(ops, rights, strict=True):
            other = self._settled(self.term(right, place))
            answer = COMPARISONS[type(op)](one, other)
            if answer is None and self.job is not None:
                answer = self.job.compared(left, op, right)
            if answer is False:
                return Known(False)
            sure = sure and answer is True
            one, left = other, right
        return Known(True) if sure else UNKNOWN

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp, place: Place) -> Term:
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            return UNKNOWN
        generator = node.generators[0]
        name = node.generators[0].target.id
        over = self._settled(self.term(generator.iter, place))
        if isinstance(over, Names) and not generator.ifs:
            return over
        if not isinstance(over, Known) or not isinstance(over.value, tuple | list | set | frozenset | str):
            return UNKNOWN
        values = []
        for item in list(over.value)[:16]:
            inner = Place(place.outline, place.function, {**place.local, name: Known(item)})
            kept = [truth(self._settled(self.term(test, inner))) for test in generator.ifs]
            if None in kept:
                return UNKNOWN
            if all(kept):
                term = self.term(node.elt, inner)
                if not isinstance(term, Known):
                    return UNKNOWN
                values.append(term.value)
        return Known(tuple(values), over.package)

    # calls

    def _call(self, node: ast.Call, place: Place) -> Term:
        from patcher.compat.conditions.calls import called

        return called(self, node, place)


def _class_of(outline: Outline, body: Body) -> str:
    """The class whose method a function is, or is nested in."""
    name = body.qualname
    while name:
        found = outline.bodies.get(name)
        if found is not None and found.owner:
            return found.owner
        name = name.rpartition(".")[0]
    return ""
