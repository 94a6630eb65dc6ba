"""What calling and iterating give."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.meaning.annotations import annotated_as
from patcher.analysis.meaning.inference import frame_of, infer, statements
from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Method,
    Outside,
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    united,
)
from patcher.analysis.symbols import Absent, Class, Function, Module, Unknown, Variable, full_name
from patcher.analysis.symbols.scope import FunctionNode

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

_UNTOLD = Unknown("what calling it gives is not known")
_ELEMENT = Unknown("what is in it is not known")


def result_of(universe: Universe, called: Meaning) -> Meanings:
    """What calling something gives, awaited if it is a coroutine."""
    from patcher.analysis.meaning.members import lookup

    match called:
        case Class() | TreeClass():
            return (InstanceOf(called, exact=True),)
        case TypeOf(of=of):
            return (InstanceOf(of),)
        case Function():
            return function_result(universe, called, None)
        case Method(function=function, receiver=receiver):
            return function_result(universe, function, receiver)
        case TreeFunction(facts=facts):
            return universe.evaluate(facts.result)
        case InstanceOf():
            found = lookup(universe, called, "__call__")
            return united(*(result_of(universe, one) for one in found if isinstance(one, Method | TreeFunction))) or (
                _UNTOLD,
            )
        case Outside(name=name):
            return (Outside(name),)
        case Absent():
            return (called,)
        case Unknown() | Variable() | Module() | TreeModule() | SuperOf() | Container():
            return (_UNTOLD,)


def element_of(universe: Universe, of: Meaning) -> Meanings:
    """What iterating over something or subscripting it gives."""
    from patcher.analysis.meaning.members import lookup

    match of:
        case Container(elements=elements):
            return elements or (_ELEMENT,)
        case InstanceOf():
            for name in ("__getitem__", "__iter__", "__aiter__"):
                found = [one for one in lookup(universe, of, name) if isinstance(one, Method | TreeFunction)]
                if found:
                    results = united(*(result_of(universe, one) for one in found))
                    if name == "__getitem__":
                        return results
                    return united(*(element_of(universe, one) for one in results if one != of))
            return (_ELEMENT,)
        case Outside():
            return (of,)
        case Class() | TypeOf():
            kind = of.of if isinstance(of, TypeOf) else of
            # A member of an enumeration, or a generic class with its arguments.
            return (InstanceOf(kind, exact=True),) if is_enumeration(universe, kind) else (of,)
        case Absent():
            return (of,)
        case _:
            return (_ELEMENT,)


def is_enumeration(universe: Universe, kind: Class | TreeClass) -> bool:
    from patcher.analysis.meaning.classes import ancestry

    return any(isinstance(base, Outside) and base.name.startswith("enum.") for base in ancestry(universe, kind))


def function_result(
    universe: Universe, function: Function, receiver: InstanceOf | TypeOf | Class | TreeClass | None
) -> Meanings:
    """What a function of a target gives: by its annotation, else by what its `return` statements say."""
    key = ("result", function, receiver)
    return universe.once(key, lambda: _function_result(universe, function, receiver), (_UNTOLD,))


def _function_result(
    universe: Universe, function: Function, receiver: InstanceOf | TypeOf | Class | TreeClass | None
) -> Meanings:
    node = function.node
    frame = frame_of(function.module, function.owner, node, receiver)
    if node.returns is not None:
        found = annotated_as(universe, node.returns, function.module, frame)
        if _is_context_manager(node):
            found = united(*(one.elements if isinstance(one, Container) else (one,) for one in found))
        return found
    returned = [inner.value for inner in statements(node.body) if isinstance(inner, ast.Return) and inner.value]
    if not returned or len(returned) > 6 or _yields(node):
        return (Unknown(f"{full_name(function)} tells no class"),) if returned or _yields(node) else ()
    return united(*(infer(universe, value, frame) for value in returned))


def _is_context_manager(node: FunctionNode) -> bool:
    return any(
        (mark.id if isinstance(mark, ast.Name) else mark.attr if isinstance(mark, ast.Attribute) else "")
        in ("contextmanager", "asynccontextmanager")
        for mark in node.decorator_list
    )


def _yields(node: FunctionNode) -> bool:
    return any(
        isinstance(inner, ast.Expr | ast.Assign) and isinstance(inner.value, ast.Yield | ast.YieldFrom)
        for inner in statements(node.body)
    )
