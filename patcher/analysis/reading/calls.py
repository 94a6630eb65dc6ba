"""Calls: of followed values they are uses; of some built-ins they are read as what they do."""

from __future__ import annotations

import ast

from patcher.analysis.reading.builtin_calls import BUILTINS, LIBRARY
from patcher.analysis.reading.collected import Collected, Partial
from patcher.analysis.reading.containers import method_of
from patcher.analysis.reading.shapes import Arguments, arguments, call, combined
from patcher.analysis.reading.targets import becomes_method, put
from patcher.analysis.reading.walk import Evaluators, Walk
from patcher.analysis.reading.ways import OPAQUE, in_standard_library, is_followed
from patcher.analysis.values import Instance, Named, Opaque, Value


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
    _escape(walk, node, values)
    _patch(walk, node, values)
    if isinstance(of, Partial):
        given = arguments(walk, node, values)
        given = Arguments(combined(of.shape, given.shape), given.sometimes)
        call(walk, node.lineno, of.of, given)
        return walk.result(of.of)
    if not is_followed(of):
        return OPAQUE
    _hand_on(walk, node, of, values)
    if not walk.silent:
        call(walk, node.lineno, of, arguments(walk, node, values))
    return walk.result(of)


def _escape(walk: Walk, node: ast.Call, values: dict[int, Value]) -> None:
    """Containers that are passed on may be changed by whoever gets them; those of `self` by its methods."""
    if walk.has_fields and isinstance(node.func, ast.Attribute):
        match node.func.value:
            case ast.Name(id="self") | ast.Call(func=ast.Name(id="super")):
                for name, value in walk.scope.names.items():
                    if name.startswith("self.") and isinstance(value, Collected):
                        walk.scope.names[name] = value.escaped()
            case _:
                pass
    for argument in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg)):
        if isinstance(argument, ast.Name | ast.Attribute):
            value = values[id(argument)] if id(argument) in values else walk.quietly(argument)
            if isinstance(value, Collected):
                put(walk, argument, value.escaped())


def _hand_on(walk: Walk, node: ast.Call, of: Value, values: dict[int, Value]) -> None:
    """`function(self, …)` of another class: there it is the same `self`."""
    match node.args:
        case [ast.Name(id="self") as first, *_] if isinstance(of, Named) and of.dotted in walk.last:
            value = values[id(first)]
            if isinstance(value, Instance):
                becomes_method(walk, of, value.of)
        case _:
            pass


def _patch(walk: Walk, node: ast.Call, values: dict[int, Value]) -> None:
    """`anything(Class, "name", function)` puts the function into the class, whoever does it."""
    match node.args:
        case [owner, ast.Constant(value=str()), function]:
            if is_followed(values[id(owner)]):
                becomes_method(walk, values[id(function)], values[id(owner)])
        case _:
            pass


CALLS: Evaluators = {ast.Call: _call}
