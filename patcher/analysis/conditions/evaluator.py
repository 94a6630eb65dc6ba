"""What an expression of the tree comes to on one target."""

from __future__ import annotations

import ast
from collections import Counter

from patcher.analysis.conditions.calls import called
from patcher.analysis.conditions.job import Job
from patcher.analysis.conditions.names import Place, Scoping, Tree, class_of
from patcher.analysis.conditions.target_queries import Outside
from patcher.analysis.conditions.terms import (
    BINARY,
    COMPARISONS,
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
    is_small,
    truth,
)
from patcher.analysis.summary import Import, Outline
from patcher.analysis.uses import Condition, Otherwise, When

_DEPTH = 24
_MOST_STEPS = 30_000
"""How many expressions the tests of one file may lead to: helpers that call two helpers each, and so on, come to
millions. Those of a file of verl lead to 3,050."""


class Evaluator(Scoping):
    """Evaluates on one target; with a `job`, also by what is known of that job."""

    def __init__(self, tree: Tree, outside: Outside, job: Job | None = None) -> None:
        super().__init__(tree, outside, job)
        self._depth = 0
        self._file = ""
        self._steps: Counter[str] = Counter()
        """By the file whose test is being evaluated."""
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
            answer = truth(self.settled(self.term(test, place)))
        except Raised:
            answer = False
        if not place.local and not self.active and self._depth == 0:
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
        if not self._depth:
            self._file = place.outline.file
        self._steps[self._file] += 1
        if self._depth > _DEPTH or self._steps[self._file] > _MOST_STEPS:
            return UNKNOWN
        self._depth += 1
        try:
            found = self._term(node, place)
        finally:
            self._depth -= 1
        if isinstance(found, Known) and not is_small(found.value):
            return UNKNOWN
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
                return self._attribute(value, name, place)
            case ast.Call():
                return self._call(node, place)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return self._compare(left, ops, rights, place)
            case ast.BoolOp(op=op, values=values):
                return self._bool(op, values, place)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                answer = truth(self.settled(self.term(operand, place)))
                return UNKNOWN if answer is None else Known(not answer)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.settled(self.term(operand, place))
                return Known(-inner.value) if isinstance(inner, Known) and isinstance(inner.value, int) else UNKNOWN
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._sequence(node, parts, place)
            case ast.Subscript(value=value, slice=key):
                return self._item(self.term(value, place), key, place)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                answer = truth(self.settled(self.term(test, place)))
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
                one, other = self.settled(self.term(left, place)), self.settled(self.term(right, place))
                if isinstance(one, Known) and isinstance(other, Known) and type(op) in BINARY:
                    return BINARY[type(op)](one, other)
                return UNKNOWN
            case _:
                return UNKNOWN

    # attributes and items

    def _attribute(self, value: ast.expr, name: str, place: Place) -> Term:
        if self.job is not None and (fixed := self.job.fixed(name)) is not None:
            return fixed
        if isinstance(value, ast.Name) and value.id == "self" and (body := place.body) is not None:
            return self.own(place.outline, class_of(place.outline, body), name)
        return self.attribute_of(self.term(value, place), name)

    def attribute_of(self, term: Term, name: str) -> Term:
        match term:
            case Thing(dotted=dotted):
                split = self.tree.split(dotted)
                if split is None or not split[1]:
                    return self.dotted(f"{dotted}.{name}")
                return self.class_attribute(split[0], split[1], name)
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
        of = self.settled(of)
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
            found = self.settled(self.term(key, place))
            if not isinstance(found, Known):
                return UNKNOWN
            index = found.value
        try:
            return Known(of.value[index], of.package)  # type: ignore[index]
        except Exception:
            return UNKNOWN

    # operators

    def _sequence(self, node: ast.expr, parts: list[ast.expr], place: Place) -> Term:
        terms = [self.settled(self.term(part, place)) for part in parts]
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
                term = self.settled(self.term(value, place))
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
        one = self.settled(self.term(left, place))
        sure = True
        for op, right in zip(ops, rights, strict=True):
            other = self.settled(self.term(right, place))
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
        over = self.settled(self.term(generator.iter, place))
        if isinstance(over, Names) and not generator.ifs:
            return over
        if not isinstance(over, Known) or not isinstance(over.value, tuple | list | set | frozenset | str):
            return UNKNOWN
        values = []
        for item in list(over.value)[:16]:
            inner = Place(place.outline, place.function, {**place.local, name: Known(item)})
            kept = [truth(self.settled(self.term(test, inner))) for test in generator.ifs]
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
        return called(self, node, place)
