"""Calls: of followed values they are uses; of some built-ins they are read as what they do."""

from __future__ import annotations

import ast

from patcher.compat.reading.builtin_calls import BUILTINS, LIBRARY
from patcher.compat.reading.collected import Collected, Partial
from patcher.compat.reading.containers import method_of
from patcher.compat.reading.shapes import Arguments, arguments, call, combined
from patcher.compat.reading.targets import put
from patcher.compat.reading.walk import Evaluators, Walk
from patcher.compat.reading.ways import OPAQUE, in_standard_library, is_followed
from patcher.compat.values import Named, Opaque, Value


def _call(walk: Walk, node: ast.Call) -> Value:
    walk.contexts[id(node)] = walk.context
    func = node.func
    builtin = isinstance(func, ast.Name) and walk.scope.find(func.id) is None
    of = OPAQUE if builtin else walk.value(func)
    values: dict[int, Value] = {}
    for argument in node.args:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        values[id(argument)] = walk.value(inner)
    for keyword in node.keywords:
        values[id(keyword)] = walk.value(keyword.value)
    if isinstance(func, ast.Name) and builtin:
        known = BUILTINS.get(func.id)
        if known is not None:
            return known(walk, node, values)
        if walk.is_builtin(func.id):
            return OPAQUE
        of = Named(walk.dotted(func.id)) if walk.stars else OPAQUE
    if type(of) is Named and in_standard_library(of.dotted):
        read = LIBRARY.get(of.dotted)
        return read(walk, node, values) if read is not None else OPAQUE
    if isinstance(func, ast.Attribute) and isinstance(of, Opaque):
        container = walk.quietly(func.value)
        if isinstance(container, Collected):
            return method_of(walk, node, func, container, values)
    _escape(walk, node)
    _patch(walk, node, values)
    if isinstance(of, Partial):
        given = arguments(walk, node, values)
        given = Arguments(combined(of.shape, given.shape), given.sometimes)
        call(walk, node.lineno, of.of, given)
        return walk.result(of.of)
    if not is_followed(of):
        return OPAQUE
    call(walk, node.lineno, of, arguments(walk, node, values))
    return walk.result(of)


def _escape(walk: Walk, node: ast.Call) -> None:
    """Containers that are passed on may be changed by whoever gets them."""
    for argument in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg)):
        if isinstance(argument, ast.Name):
            value = walk.scope.find(argument.id)
            if isinstance(value, Collected):
                put(walk, argument.id, value.escaped())


def _patch(walk: Walk, node: ast.Call, values: dict[int, Value]) -> None:
    """`anything(Class, "name", function)` puts the function into the class, whoever does it."""
    match node.args:
        case [owner, ast.Constant(value=str()), function]:
            of, new = values[id(owner)], values[id(function)]
            if isinstance(new, Named) and is_followed(of) and new.dotted.startswith(f"{walk.module}."):
                walk.patched.setdefault(new.dotted, of)
        case _:
            pass


CALLS: Evaluators = {ast.Call: _call}
