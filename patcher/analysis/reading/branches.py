"""Statements after which the code may go several ways."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.analysis.model import Condition, Otherwise, When
from patcher.analysis.reading.collected import element_of
from patcher.analysis.reading.flow import catches, leaves, raises, swallowed
from patcher.analysis.reading.narrowing import narrowed
from patcher.analysis.reading.scope import Names, Way, merged
from patcher.analysis.reading.targets import assign
from patcher.analysis.reading.walk import Executors, Walk
from patcher.analysis.reading.ways import OPAQUE, is_followed
from patcher.analysis.values import Member, Named, Result


def _if(walk: Walk, node: ast.If) -> None:
    checking = _type_checking(walk, node.test)
    if checking is not None:
        _for_types_alone(walk, *((node.body, node.orelse) if checking else (node.orelse, node.body)))
        return
    walk.value(node.test)
    before = walk.scope.names
    ways: list[Way] = []
    for block, holds in ((node.body, True), (node.orelse, False)):
        condition = When(node.test, holds)
        names = _branch(walk, block, condition, before, holds)
        if not leaves(block):
            ways.append(((condition,), names))
    walk.scope.names = _meet(walk, ways) if ways else before
    if len(ways) == 1:
        left = leaves(node.body)
        walk.assume(When(node.test, not left, assumed=raises(node.body if left else node.orelse)))
        walk.scope.names = narrowed(walk, node.test, not left, walk.scope.names)


def _branch(walk: Walk, block: Sequence[ast.stmt], condition: When, before: Names, holds: bool) -> Names:
    start = narrowed(walk, condition.test, holds, before)
    walk.scope.names = dict(start)
    with walk.under(condition):
        walk.run(block)
    names = walk.scope.names
    if start is not before:
        for name, value in start.items():
            if before.get(name) is not value and names.get(name) is value:
                if name in before:
                    names[name] = before[name]
                else:
                    del names[name]
    return names


def _meet(walk: Walk, ways: list[Way]) -> Names:
    return merged(ways, walk.module if walk.scope.kind == "module" else None)


def _type_checking(walk: Walk, test: ast.expr) -> bool | None:
    """Whether it asks if types are being checked, or if they are not; None for any other test."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _type_checking(walk, operand)
            return None if inner is None else not inner
        case _:
            return None


def _for_types_alone(walk: Walk, never: Sequence[ast.stmt], always: Sequence[ast.stmt]) -> None:
    before, walk.silent = walk.silent, True
    with walk.under():
        walk.run(never)
    walk.silent = before
    walk.run(always)


def _loop(walk: Walk, node: ast.For | ast.AsyncFor | ast.While) -> None:
    scope = walk.scope
    conditions: tuple[Condition, ...] = ()
    if isinstance(node, ast.While):
        walk.value(node.test)
        conditions = (When(node.test, True),)
        before = scope.names
        scope.names = dict(before)
    else:
        element = element_of(walk.value(node.iter))
        before = scope.names
        scope.names = dict(before)
        assign(walk, node.target, element)
    exits, scope.exits = scope.exits, []
    walk.looping += 1
    with walk.under(*conditions):
        walk.run(node.body)
    walk.looping -= 1
    endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    ways = [] if endless and scope.exits else [((), before)]
    if not leaves(node.body):
        ways.append(((), scope.names))
    scope.names = dict(_meet(walk, [*ways, *scope.exits]))
    scope.exits = exits
    with walk.under():
        walk.run(node.orelse)


def _leave_loop(walk: Walk, node: ast.Break | ast.Continue) -> None:  # noqa: ARG001
    walk.scope.exits.append(((), walk.scope.names))


def _try(walk: Walk, node: ast.Try) -> None:
    scope = walk.scope
    first, last = node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
    before = scope.names
    scope.names = dict(before)
    attempts = walk.attempts
    if node.handlers:
        everything = tuple(name for handler in node.handlers for name in catches(handler))
        walk.attempts = (*attempts, Otherwise(first, last, everything))
    with walk.under(caught=swallowed(node.handlers)):
        walk.run(node.body)
    broken_off = _meet(walk, [((), before), ((), scope.names)])
    with walk.under():
        walk.run(node.orelse)
    walk.attempts = attempts
    ways: list[Way] = [] if leaves(node.body) or leaves(node.orelse) else [((), scope.names)]
    through = not ways
    for handler in node.handlers:
        condition = Otherwise(first, last, catches(handler))
        scope.names = dict(broken_off)
        with walk.under(condition):
            if handler.type is not None:
                walk.value(handler.type)
            if handler.name:
                scope.names[handler.name] = OPAQUE
            walk.run(handler.body)
        if not leaves(handler.body):
            ways.append(((condition,), scope.names))
    scope.names = dict(_meet(walk, ways)) if ways else broken_off
    walk.run(node.finalbody)
    if through and ways:
        taken = [condition for conditions, _ in ways for condition in conditions if isinstance(condition, Otherwise)]
        walk.assume(Otherwise(first, last, tuple(name for condition in taken for name in condition.catches)))


def _with(walk: Walk, node: ast.With | ast.AsyncWith) -> None:
    suppressed: tuple[str, ...] = ()
    entering = "__aenter__" if isinstance(node, ast.AsyncWith) else "__enter__"
    for item in node.items:
        manager = item.context_expr
        value = walk.value(manager)
        if isinstance(manager, ast.Call) and walk.quietly(manager.func) == Named("contextlib.suppress"):
            suppressed += tuple(ast.unparse(argument) for argument in manager.args)
        if item.optional_vars is not None:
            assign(walk, item.optional_vars, Result(Member(value, entering)) if is_followed(value) else OPAQUE)
    attempts = walk.attempts
    if suppressed:
        last = node.body[-1].end_lineno or node.body[-1].lineno
        walk.attempts = (*attempts, Otherwise(node.body[0].lineno, last, suppressed))
    with walk.under(caught=suppressed):
        walk.run(node.body)
    walk.attempts = attempts


def _match(walk: Walk, node: ast.Match) -> None:
    walk.value(node.subject)
    before = walk.scope.names
    ways: list[Way] = [((), before)]
    for case in node.cases:
        walk.scope.names = dict(before)
        test = _case_test(node.subject, case.pattern)
        with walk.under(*([When(test, True)] if test is not None else [])):
            for inner in ast.walk(case.pattern):
                if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
                    walk.bind(inner.name, OPAQUE)
                elif isinstance(inner, ast.MatchClass):
                    walk.value(inner.cls)
                elif isinstance(inner, ast.MatchValue):
                    walk.value(inner.value)
            if case.guard is not None:
                walk.value(case.guard)
                walk.assume(When(case.guard, True))
            walk.run(case.body)
        if not leaves(case.body):
            ways.append(((), walk.scope.names))
    walk.scope.names = _meet(walk, ways)


def _case_test(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """A test that says the same as a pattern: `subject == value`. One for any other pattern that none can evaluate."""
    match pattern:
        case ast.MatchAs(pattern=None):
            return None
        case ast.MatchValue(value=value):
            return ast.copy_location(ast.Compare(subject, [ast.Eq()], [value]), subject)
        case _:
            return ast.copy_location(ast.Call(ast.Name("match", ast.Load()), [subject], []), subject)


BRANCHES: Executors = {
    ast.If: _if,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.While: _loop,
    ast.Break: _leave_loop,
    ast.Continue: _leave_loop,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):
    BRANCHES = {**BRANCHES, ast.TryStar: _try}
