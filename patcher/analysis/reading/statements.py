"""Statements that do one thing and go on."""

from __future__ import annotations

import ast

from patcher.analysis.model import When
from patcher.analysis.reading.annotations import annotated
from patcher.analysis.reading.collected import Collected
from patcher.analysis.reading.narrowing import narrowed
from patcher.analysis.reading.targets import assign, put
from patcher.analysis.reading.walk import Executors, Walk
from patcher.analysis.reading.ways import OPAQUE, is_followed
from patcher.analysis.values import Named, Value


def _assign(walk: Walk, node: ast.Assign) -> None:
    value = walk.value(node.value)
    for target in node.targets:
        assign(walk, target, value, node.value)


def _annotated(walk: Walk, node: ast.AnnAssign) -> None:
    if walk.annotations_run and walk.scope.kind in ("module", "class"):
        walk.value(node.annotation)
    declared = annotated(walk, node.annotation)
    if node.value is None:
        if walk.scope.kind == "class" or is_followed(declared) or isinstance(declared, Collected):
            assign(walk, node.target, declared)
        return
    assign(walk, node.target, _more_telling(declared, walk.value(node.value)), node.value)


def _more_telling(declared: Value, value: Value) -> Value:
    if isinstance(value, Collected):
        empty = isinstance(declared, Collected) and not value.items and is_followed(declared.element())
        return declared if empty else value
    return declared if is_followed(declared) or isinstance(declared, Collected) else value


def _augmented(walk: Walk, node: ast.AugAssign) -> None:
    before = walk.value(node.target)
    value = walk.value(node.value)
    if not isinstance(node.target, ast.Name):
        return
    if isinstance(before, Collected):
        more = value if isinstance(value, Collected) else Collected(open=True)
        put(walk, node.target, before.adding(*more.items, open_too=more.open))
    else:
        walk.bind(node.target.id, OPAQUE)


def _expression(walk: Walk, node: ast.Expr) -> None:
    walk.value(node.value)


def _return(walk: Walk, node: ast.Return) -> None:
    if node.value is not None:
        walk.scope.results.append(walk.value(node.value))


def _raise(walk: Walk, node: ast.Raise) -> None:
    for part in (node.exc, node.cause):
        if part is not None:
            walk.value(part)


def _assert(walk: Walk, node: ast.Assert) -> None:
    walk.value(node.test)
    if node.msg is not None:
        with walk.under(When(node.test, False)):
            walk.value(node.msg)
    walk.scope.names = narrowed(walk, node.test, True, walk.scope.names)


def _delete(walk: Walk, node: ast.Delete) -> None:
    for target in node.targets:
        match target:
            case ast.Name(id=name):
                walk.scope.names[name] = OPAQUE
            case ast.Subscript(value=of, slice=key):
                container = walk.value(of)
                walk.value(key)
                if isinstance(container, Collected):
                    text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
                    put(walk, of, container.without(text))
            case ast.Attribute(value=of):
                walk.value(of)
            case _:
                pass


def _global(walk: Walk, node: ast.Global) -> None:
    for name in node.names:
        walk.scope.shared.add(name)
        walk.scope.names[name] = Named(walk.dotted(name))


def _nothing(walk: Walk, node: ast.stmt) -> None:
    pass


STATEMENTS: Executors = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nothing,
    ast.Pass: _nothing,
}
if hasattr(ast, "TypeAlias"):
    STATEMENTS = {**STATEMENTS, ast.TypeAlias: _nothing}
