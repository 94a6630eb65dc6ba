"""The parameters of a function: how it may be called, and what they stand for in its body."""

from __future__ import annotations

import ast

from patcher.analysis.model import Parameters
from patcher.analysis.reading.annotations import annotated
from patcher.analysis.reading.collected import Collected, Item
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import OPAQUE
from patcher.analysis.values import Value


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> Parameters:
    """`bound`: the first one is `self` or `cls`, and is left out."""
    arguments = node.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = positional[: len(positional) - len(arguments.defaults)]
    keyword = [argument.arg for argument in arguments.kwonlyargs]
    required += [name for name, default in zip(keyword, arguments.kw_defaults, strict=True) if default is None]
    if bound and positional:
        required = [name for name in required if name != positional[0]]
        positional = positional[1:]
    return Parameters(
        tuple(positional),
        tuple(keyword),
        tuple(required),
        any_positional=arguments.vararg is not None,
        any_keyword=arguments.kwarg is not None,
    )


def parameter_values(walk: Walk, arguments: ast.arguments, first: Value | None = None) -> dict[str, Value]:
    """What each parameter stands for; `first`: what the first one is, whatever it is annotated with."""
    values: dict[str, Value] = {}
    for argument in (*arguments.posonlyargs, *arguments.args):
        if first is not None and not values:
            values[argument.arg] = first
        else:
            values[argument.arg] = annotated(walk, argument.annotation)
    for argument in arguments.kwonlyargs:
        values[argument.arg] = annotated(walk, argument.annotation)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            element = annotated(walk, rest.annotation)
            items = () if element is OPAQUE else (Item(None, element, rest.lineno),)
            values[rest.arg] = Collected(items, open=True, origin=id(rest))
    return values


def evaluate_signature(walk: Walk, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """What runs where a function is defined: decorators, defaults, and annotations unless they are put off."""
    for expression in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
        if expression is not None:
            walk.value(expression)
    if not walk.annotations_run:
        return
    rest = [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest):
        if argument.annotation is not None:
            walk.value(argument.annotation)
    if node.returns is not None:
        walk.value(node.returns)
