"""Functions that hand back what they are given: `AutoModel = updated(AutoModel)` leaves the class what it was."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.symbols.definition import Function, Module, Resolution, Unknown
from patcher.analysis.symbols.scope import Binding

if TYPE_CHECKING:
    from patcher.analysis.symbols.resolver import Symbols


def handed_back(symbols: Symbols, module: Module, value: ast.expr | None) -> ast.Name | None:
    """The name that a call like `updated(X)` gives back as it is; None if the value is no such call."""
    match value:
        case ast.Call(func=ast.Name() | ast.Attribute() as called, args=[ast.Name() as given, *_]):
            found = symbols.expression(module.name, called).definition
            return given if isinstance(found, Function) and _gives_back(found.node) else None
        case _:
            return None


def before(symbols: Symbols, module: Module, name: str, binding: Binding) -> Resolution | None:
    """What `name` was bound to before `binding` bound it anew; None if that is not certain."""
    scope = symbols.modules.scope(module)
    every = [] if isinstance(scope, Unknown) else scope.names.get(name, [])
    earlier = every[: every.index(binding)] if binding in every else []
    return symbols.bound(module, earlier[-1], name) if earlier and earlier[-1].certain else None


def _gives_back(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether every `return` gives the first parameter, which is not bound anew."""
    if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list or not node.args.args:
        return False
    first = node.args.args[0].arg
    own = list(_own(node))
    returns = [one for one in own if isinstance(one, ast.Return)]
    stored = any(isinstance(one, ast.Name) and one.id == first and isinstance(one.ctx, ast.Store) for one in own)
    return (
        not stored
        and bool(returns)
        and all(isinstance(one.value, ast.Name) and one.value.id == first for one in returns)
    )


def _own(node: ast.AST) -> list[ast.AST]:
    """The nodes below, those of functions inside left out."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        found.append(child)
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            found += _own(child)
    return found
