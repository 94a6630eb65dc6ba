"""What of a function's body is asked for: its imports, its assignments, and what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from patcher.analysis.bindings import Imported, assigned, imports
from patcher.analysis.expressions import Expression, expression, maybe
from patcher.analysis.syntax import FunctionNode, below, own_nodes, statements_below


@dataclass(slots=True, eq=False)
class FunctionBody:
    imports: dict[str, Imported] = field(default_factory=dict)
    """By the local name."""
    values: dict[str, list[tuple[Expression | None, Expression | None]]] = field(default_factory=dict)
    """Annotation and value of each assignment to a local name."""
    returned: list[Expression] = field(default_factory=list)
    yields: bool = False
    runs: set[str] = field(default_factory=set)
    """Methods of `self` or `cls` that are called for what is returned or assigned."""


def read_body(function: FunctionNode) -> FunctionBody:
    """What a function's own statements do, without those of functions and classes inside it."""
    found = FunctionBody()
    for node in statements_below(function, nested=False):
        match node:
            case ast.ImportFrom() | ast.Import():
                found.imports |= {one.local: one for one in imports(node)}
            case ast.Return(value=ast.expr() as value):
                found.returned.append(expression(value))
                found.runs.update(_own_calls(value))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _note(found, target, value)
                found.yields = found.yields or isinstance(value, ast.Yield | ast.YieldFrom)
                found.runs.update(_own_calls(value))
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                _note(found, target, value, annotation)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                _note(found, target, None)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    _note(found, item.optional_vars, item.context_expr)
            case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
                found.yields = True
    return found


def _note(
    found: FunctionBody, target: ast.expr | None, value: ast.expr | None, annotation: ast.expr | None = None
) -> None:
    for one, given in assigned(target, value):
        if isinstance(one, ast.Name):
            found.values.setdefault(one.id, []).append((maybe(annotation), maybe(given)))


def _own_calls(value: ast.expr) -> Iterator[str]:
    for node in below(value):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                yield name


def returns_its_argument(node: FunctionNode) -> bool:
    """Whether every `return` gives the first parameter, which is not bound anew."""
    if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list or not node.args.args:
        return False
    first = node.args.args[0].arg
    own = own_nodes(node)
    returns = [one for one in own if isinstance(one, ast.Return)]
    stored = any(isinstance(one, ast.Name) and one.id == first and isinstance(one.ctx, ast.Store) for one in own)
    return (
        not stored
        and bool(returns)
        and all(isinstance(one.value, ast.Name) and one.value.id == first for one in returns)
    )
