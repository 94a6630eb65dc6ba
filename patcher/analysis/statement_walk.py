"""One walk over the statements of a body, in files of a tree and of packages alike."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from patcher.analysis.expressions import expression
from patcher.analysis.syntax import caught, for_type_checkers, leaves
from patcher.analysis.uses import MOST_CONDITIONS, Condition, When, WhenRaised


class StatementContext(NamedTuple):
    """Under what a statement of a body runs."""

    conditions: tuple[Condition, ...] = ()
    certain: bool = True
    """Not inside `if`, a loop or the like, nor where a handler may be in its place. What follows a `return` under a
    condition still is."""
    for_checkers: bool = False
    """It is there for type checkers alone and never runs."""
    caught: bool = False
    """A handler may swallow what it raises."""
    test: ast.expr | None = None
    """That of the last `When` among the conditions."""

    @property
    def raised(self) -> bool:
        """It runs only if something else raises."""
        return any(isinstance(one, WhenRaised) for one in self.conditions)

    def under(self, test: ast.expr, condition: When, *, certain: bool) -> StatementContext:
        """The same under one more test."""
        if len(self.conditions) >= MOST_CONDITIONS:
            return self._replace(certain=certain)
        return self._replace(conditions=(*self.conditions, condition), certain=certain, test=test)


def statements_of(
    body: Iterable[ast.stmt],
    at: StatementContext = StatementContext(),  # noqa: B008
) -> Iterator[tuple[ast.stmt, StatementContext]]:
    """The statements that run with the body, each with its context; not what functions and classes in it hold."""
    for node in body:
        yield node, at
        if type(node) in _SIMPLE:
            continue
        match node:
            case ast.If(test=test, body=inner, orelse=orelse):
                checked = for_type_checkers(test)
                if checked is not None:
                    hidden, shown = (inner, orelse) if checked else (orelse, inner)
                    # A lazy package shows its names to type checkers and puts a lazy module in its own place otherwise:
                    #     if TYPE_CHECKING:
                    #         from .models import Llama
                    #     else:
                    #         sys.modules[__name__] = _LazyModule(...)
                    # What type checkers are shown is what the lazy module serves.
                    yield from statements_of(hidden, at if replaces_module(shown) else at._replace(for_checkers=True))
                    yield from statements_of(shown, at)
                    continue
                made = expression(test)
                holds, fails = When(made, True), When(made, False)
                yield from statements_of(inner, at.under(test, holds, certain=False))
                yield from statements_of(orelse, at.under(test, fails, certain=False))
                if leaves(inner) and not orelse:
                    at = at.under(test, fails, certain=at.certain)
                elif leaves(orelse):
                    at = at.under(test, holds, certain=at.certain)
            case ast.Assert(test=test):
                at = at.under(test, When(expression(test), True), certain=at.certain)
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                yield from statements_of(inner, at)
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from statements_of([*node.body, *node.orelse], at._replace(certain=False))
            case ast.Match(cases=cases):
                for case in cases:
                    yield from statements_of(case.body, at._replace(certain=False))
            case ast.stmt() if isinstance(node, _TRIES):
                # With a handler the body may break off anywhere: `try: from b import x / except ImportError: x = None`.
                sure = at.certain and not node.handlers
                yield from statements_of(node.body, at._replace(certain=sure, caught=at.caught or bool(node.handlers)))
                last = node.body[-1].end_lineno or node.body[-1].lineno
                for handler in node.handlers:
                    condition = WhenRaised(node.body[0].lineno, last, caught(handler.type))
                    under = at._replace(conditions=(*at.conditions, condition), certain=False)
                    yield from statements_of(handler.body, under)
                yield from statements_of(node.orelse, at._replace(certain=sure))
                yield from statements_of(node.finalbody, at)


_SIMPLE = frozenset({ast.Assign, ast.Expr, ast.Return, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AnnAssign})
"""Most statements are of these kinds, none of which holds others that run with the body."""
# `except*` came with Python 3.11.
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))


def replaces_module(body: Iterable[ast.stmt]) -> bool:
    """Whether the module puts another in its own place, which serves what type checkers are shown."""
    for node in body:
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__"))]
            ):
                return True
    return False
