"""Small functions as plain values, for who asks what a call of one returns.

def at_least(wanted):
    try:
        return Version(version("vllm")) >= Version(wanted)
    except PackageNotFoundError:
        return False
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from patcher.analysis.bindings import Imported, imports
from patcher.analysis.expressions import Expression, expression, maybe
from patcher.analysis.syntax import FunctionNode, caught, last_name

_LINES = 60
"""Lines of a function that is followed at all: longer ones do more than answer a question."""


class Return(NamedTuple):
    value: Expression | None


class Assign(NamedTuple):
    name: str
    value: Expression


class Unfollowed(NamedTuple):
    """`a, b = f()`: the names have values that are not followed."""

    names: tuple[str, ...]
    value: Expression


class Raise(NamedTuple):
    """`exception` is its last word, "Exception" where it is computed."""

    exception: str


class If(NamedTuple):
    test: Expression
    body: Steps
    orelse: Steps


class Try(NamedTuple):
    """Each handler has the exceptions that it names, as written."""

    body: Steps
    orelse: Steps
    handlers: tuple[tuple[tuple[str, ...], Steps], ...]
    last: Steps


class With(NamedTuple):
    body: Steps


class Stop(NamedTuple):
    """A statement that is not followed, such as a loop: a run that comes here ends without an answer."""


Step: TypeAlias = Return | Assign | Unfollowed | Imported | Raise | If | Try | With | Stop
Steps: TypeAlias = "tuple[Step, ...]"


def steps_of_small(node: FunctionNode, package: str) -> Steps | None:
    """The steps of a function; None for one that is not followed. `package` is where relative imports start."""
    length = (node.end_lineno or node.lineno) - node.lineno
    if length > _LINES or isinstance(node, ast.AsyncFunctionDef) or node.args.vararg or node.args.kwarg:
        return None
    return _steps(node.body, package)


def steps_of(node: ast.FunctionDef) -> Steps:
    """The steps of a function of any length, with its imports as written."""
    return _steps(node.body, None)


def _steps(body: Sequence[ast.stmt], package: str | None) -> Steps:
    found: list[Step] = []
    for node in body:
        found += _read(node, package)
        # Nothing behind one of these is ever reached.
        if found and isinstance(found[-1], Return | Raise | Stop):
            break
    return tuple(found)


def _read(node: ast.stmt, package: str | None) -> Sequence[Step]:
    match node:
        case ast.Return(value=value):
            return [Return(maybe(value))]
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            return [Assign(name, expression(value))]
        case ast.Assign(targets=targets, value=value):
            every = (part for target in targets for part in ast.walk(target))
            stored = (part.id for part in every if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
            return [Unfollowed(tuple(stored), expression(value))]
        case ast.Import() | ast.ImportFrom():
            return list(imports(node, package))
        case ast.Raise(exc=exception):
            target = exception.func if isinstance(exception, ast.Call) else exception
            return [Raise(last_name(target) or "Exception")]
        case ast.If(test=test):
            return [If(expression(test), _steps(node.body, package), _steps(node.orelse, package))]
        case ast.Try():
            handlers = tuple((caught(handler.type), _steps(handler.body, package)) for handler in node.handlers)
            body, orelse = _steps(node.body, package), _steps(node.orelse, package)
            return [Try(body, orelse, handlers, _steps(node.finalbody, package))]
        case ast.With(body=inner):
            return [With(_steps(inner, package))]
        # Calls of a logger, docstrings. An `assert` is taken to hold; names defined inside stay unknown, which is safe.
        case ast.Expr() | ast.Pass() | ast.Assert() | ast.Global() | ast.FunctionDef() | ast.ClassDef():
            return []
        case _:
            return [Stop()]
