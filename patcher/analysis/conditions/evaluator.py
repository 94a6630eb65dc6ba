"""Tests of the tree, evaluated on one target without running any code: true, false, or not known (None).

    if version("vllm") >= "0.9" and hasattr(vllm, "LLM"):    # the target's version and symbols decide
    if config.lora.enable:                                   # what is known of the plain job decides, given a `Job`

An exception that the test raises for certain makes it false: the code under it does not run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import Imported
from patcher.analysis.conditions.calls import called
from patcher.analysis.conditions.job import Job
from patcher.analysis.conditions.names import EvalContext, NameResolver, Summaries, class_of
from patcher.analysis.conditions.target_queries import TargetQueries
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
    Reference,
    Setting,
    SignatureOf,
    Term,
    Unknown,
    is_caught,
    is_misordered,
    is_small,
    package_of,
    truth,
    values_of,
)
from patcher.analysis.expressions import Expression
from patcher.analysis.summary import FileSummary
from patcher.analysis.uses import Condition, When, WhenRaised

_DEPTH = 24
"""How deep expressions may nest or lead to each other: a guess well above what tests written by hand need, and well
below what Python's stack bears."""
_MOST_STEPS = 30_000
"""How many expressions the tests of one file may lead to: helpers that call two helpers each, and so on, come to
millions. Those of a file of verl lead to 3,050."""


class Evaluator(NameResolver):
    """Evaluates on one target; with a `job`, also by what is known of that job."""

    def __init__(self, summaries: Summaries, queries: TargetQueries, job: Job | None = None) -> None:
        super().__init__(summaries, queries, job)
        self._depth = 0
        self._file = ""
        self._steps: Counter[str] = Counter()
        """By the file whose test is being evaluated."""
        self._answers: dict[tuple[int, str], tuple[Expression, bool | None, bool]] = {}

    def holds(self, test: Expression, context: EvalContext) -> bool | None:
        """Whether a test is true on the target; None if that cannot be known."""
        key = (id(test), f"{context.summary.file}:{context.function}")
        # With local values (a function that is being interpreted) the answer may be another each time.
        if not context.local and key in self._answers:
            _, answer, asked = self._answers[key]
            self.asked = self.asked or asked
            return answer
        # An answer is kept with whether it rests on the target, so that the next one who asks is told so too.
        before, self.asked = self.asked, False
        try:
            answer = truth(self.value(test, context))
        # `if version("flash_attn") > ...` without flash-attn: the test raises, so the code under it does not run.
        except Raised:
            answer = False
        if not context.local and not self.active and self._depth == 0:
            self._answers[key] = (test, answer, self.asked)
        self.asked = self.asked or before
        return answer

    def runs(self, conditions: tuple[Condition, ...], context: EvalContext) -> bool | None:
        """Whether code under these conditions runs."""
        sure: bool | None = True
        for condition in conditions:
            match condition:
                case When(test=test, holds=wanted):
                    answer = self.holds(test, context)
                    answer = answer if answer is None or wanted else not answer
                case WhenRaised():
                    answer = self.fails(condition, context.summary)
            if answer is False:
                return False
            sure = sure if answer else None
        return sure

    def fails(self, condition: WhenRaised, summary: FileSummary) -> bool | None:
        """Whether one of the imports in the lines of a `try` fails and is caught: its handler runs."""
        sure: bool | None = False
        for body in summary.bodies.values():
            if not (body.first <= condition.first and condition.last <= body.last):
                continue
            for block in body.content.blocks:
                for one in block.imports:
                    if not condition.first <= one.line <= condition.last:
                        continue
                    self.asked = True
                    answer = self._import_fails(one)
                    # `from vllm.new import x` in the `try`, and `except ImportError` catches it.
                    if answer and is_caught(self.queries.raised_by(one), condition.catches):
                        return True
                    sure = sure if answer is False else None
        return sure

    def _import_fails(self, one: Imported) -> bool | None:
        # An import of the tree itself may fail for what that module imports, which is not followed.
        if self.summaries.split(one.module) is not None:
            return None
        present = self.queries.has_import(one)
        return None if present is None else not present

    def term(self, of: Expression, context: EvalContext) -> Term:
        """What an expression comes to. Raises `Raised`."""
        if not self._depth:
            self._file = context.summary.file
        self._steps[self._file] += 1
        if self._depth > _DEPTH or self._steps[self._file] > _MOST_STEPS:
            return UNKNOWN
        self._depth += 1
        try:
            found = self._term(of, context)
        finally:
            self._depth -= 1
        if isinstance(found, Known) and not is_small(found.value):
            return UNKNOWN
        # `self.config.lora.enable`: unknown, and by its name a feature that the plain job does not use.
        if self.job is not None and isinstance(found, Unknown) and self.job.is_off(of):
            return OFF
        return found

    def _term(self, of: Expression, context: EvalContext) -> Term:
        match of:
            case ex.Constant(value=value):
                return Known(value)
            case ex.Name(id=name):
                return self.name(name, context)
            case ex.Attribute(of=value, name=name):
                return self._attribute(value, name, context)
            case ex.Call():
                return called(self, of, context)
            case ex.Compare():
                return self._compare(of, context)
            case ex.BoolOp():
                return self._bool(of, context)
            case ex.Not(of=operand):
                answer = truth(self.value(operand, context))
                return UNKNOWN if answer is None else Known(not answer)
            case ex.Negative(of=operand):
                inner = self.value(operand, context)
                return Known(-inner.value) if isinstance(inner, Known) and isinstance(inner.value, int) else UNKNOWN
            case ex.Elements():
                return self._elements(of, context)
            case ex.Table():
                return self._table(of, context)
            case ex.Subscript(of=value, key=key):
                return self._item(self.term(value, context), key, context)
            case ex.IfExp(test=test, body=body, orelse=orelse):
                answer = truth(self.value(test, context))
                if answer is None:
                    # An undecided test does not matter where both sides are the same.
                    one, other = self.term(body, context), self.term(orelse, context)
                    return one if one == other else UNKNOWN
                return self.term(body if answer else orelse, context)
            case ex.Comprehension():
                return self._comprehension(of, context)
            case ex.BinOp(left=left, operator=operator, right=right):
                one, other = self.value(left, context), self.value(right, context)
                if isinstance(one, Known) and isinstance(other, Known) and operator in BINARY:
                    return BINARY[operator](one, other)
                return UNKNOWN
            case ex.Slice() | ex.Generated() | ex.Formatted() | ex.Lambda() | ex.Spread() | ex.Other():
                return UNKNOWN

    # attributes and items

    def _attribute(self, value: Expression, name: str, context: EvalContext) -> Term:
        if (fixed := self.fixed(name)) is not None:
            return fixed
        if isinstance(value, ex.Name) and value.id == "self" and (body := context.body) is not None:
            return self.self_attribute(context.summary, class_of(context.summary, body), name)
        return self.attribute_of(self.term(value, context), name)

    def attribute_of(self, term: Term, name: str) -> Term:
        match term:
            case Reference(dotted=dotted):
                split = self.summaries.split(dotted)
                if split is None or not split[1]:
                    return self.dotted(f"{dotted}.{name}")
                return self.class_attribute(split[0], split[1], name)
            case Known():
                return self.queries.known_attribute(term, name)
            case SignatureOf(of=reference):
                self.asked = True
                if name == "parameters":
                    return self.queries.parameters(reference)
                found = self.queries.parameters(reference) if name in ("args", "kwonlyargs") else UNKNOWN
                return replace(found, count=None) if isinstance(found, Names) else found
            # `parameters.keys`
            case Names():
                return Method(Known(term), name)
            case Setting(path=path, hints=hints):
                return Setting((*path, name), hints)
            case Off():
                return OFF
            case _:
                return UNKNOWN

    def _item(self, of: Term, key: Expression, context: EvalContext) -> Term:
        if isinstance(of, Setting):
            name = self.term(key, context)
            return (
                Setting((*of.path, name.value), of.hints)
                if isinstance(name, Known) and isinstance(name.value, str)
                else UNKNOWN
            )
        of = self.resolve_setting(of)
        if isinstance(of, Off):
            return OFF
        if not isinstance(of, Known):
            return UNKNOWN
        index: object
        if isinstance(key, ex.Slice):
            parts = (key.lower, key.upper, key.step)
            bounds = values_of([Known(None) if part is None else self.term(part, context) for part in parts])
            if bounds is None:
                return UNKNOWN
            index = slice(*bounds)
        else:
            found = self.value(key, context)
            if not isinstance(found, Known):
                return UNKNOWN
            index = found.value
        try:
            return Known(of.value[index], of.package)  # type: ignore[index]
        except Exception:
            return UNKNOWN

    # operators

    def _elements(self, of: ex.Elements, context: EvalContext) -> Term:
        terms = [self.value(part, context) for part in of.values]
        values = values_of(terms)
        if values is None:
            return UNKNOWN
        try:
            return Known(set(values) if of.kind == "set" else tuple(values), package_of(terms))
        except TypeError:
            return UNKNOWN

    def _table(self, of: ex.Table, context: EvalContext) -> Term:
        # An empty one is filled somewhere, so that what it holds is not known.
        if not of.keys or not all(isinstance(key, ex.Constant) for key in of.keys):
            return UNKNOWN
        known = values_of([self.value(value, context) for value in of.values])
        if known is None:
            return UNKNOWN
        return Known(
            {key.value: value for key, value in zip(of.keys, known, strict=True) if isinstance(key, ex.Constant)}
        )

    def _bool(self, of: ex.BoolOp, context: EvalContext) -> Term:
        decisive = not of.every
        unsure = False
        term: Term = UNKNOWN
        for value in of.values:
            try:
                term = self.value(value, context)
            except Raised:
                # The exception is certain only if no earlier part could have ended the evaluation.
                if not unsure:
                    raise
                return UNKNOWN
            answer = truth(term)
            # `unknown or True` is true, whatever the unknown part is.
            if answer is decisive:
                return Known(decisive) if unsure else term
            unsure = unsure or answer is None
        return UNKNOWN if unsure else term

    def _compare(self, of: ex.Compare, context: EvalContext) -> Term:
        left = of.left
        one = self.value(left, context)
        sure = True
        for operator, right in zip(of.operators, of.rights, strict=True):
            other = self.value(right, context)
            answer = COMPARISONS[operator](one, other)
            if answer is None and self.job is not None:
                answer = self.job.compared(left, operator, right)
            # `"0.20.2" <= "0.6.3"` takes one branch as it is, and the other once somebody has repaired it.
            if answer is not None and package_of((one, other)) and is_misordered(one, operator, other):
                answer = None
            if answer is False:
                return Known(False)
            sure = sure and answer is True
            one, left = other, right
        return Known(True) if sure else UNKNOWN

    def _comprehension(self, of: ex.Comprehension, context: EvalContext) -> Term:
        over = self.value(of.over, context)
        if isinstance(over, Names) and not of.tests:
            return over
        if not isinstance(over, Known) or not isinstance(over.value, tuple | list | set | frozenset | str):
            return UNKNOWN
        values = []
        # Sixteen elements: a version has three or four parts. More would only cost time.
        for item in list(over.value)[:16]:
            inner = EvalContext(context.summary, context.function, {**context.local, of.name: Known(item)})
            kept = [truth(self.value(test, inner)) for test in of.tests]
            if None in kept:
                return UNKNOWN
            if all(kept):
                term = self.term(of.element, inner)
                if not isinstance(term, Known):
                    return UNKNOWN
                values.append(term.value)
        return Known(tuple(values), over.package)
