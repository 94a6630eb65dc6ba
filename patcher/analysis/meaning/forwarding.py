"""`*args` and `**kwargs` that a function only passes on: then it takes what their receiver takes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.meaning.inference import frame_of, infer
from patcher.analysis.meaning.meanings import InstanceOf, SuperOf
from patcher.analysis.symbols import Function, Parameter, Signature

if TYPE_CHECKING:
    from patcher.analysis.meaning.classes import Receiver
    from patcher.analysis.meaning.universe import Universe

_READS = frozenset({"pop", "get", "setdefault"})
_DEPTH = 5


def widened(universe: Universe, function: Function, signature: Signature, receiver: Receiver | None) -> Signature:
    """The signature with `**kwargs` replaced by what becomes of them, where they go to one call and nowhere else.

    `receiver` is what the function is called on: `super()` follows its bases."""
    if not signature.any_keyword or function.node.args.kwarg is None:
        return signature
    key = ("widened", function, signature, receiver)
    return universe.once(key, lambda: _widened(universe, function, signature, receiver), signature)


def _widened(universe: Universe, function: Function, signature: Signature, receiver: Receiver | None) -> Signature:
    from patcher.analysis.meaning.callables import Takes, takes

    node = function.node
    assert node.args.kwarg is not None
    words = node.args.kwarg.arg
    spread = _spread(node, words)
    if spread is None:
        return signature
    call, read = spread
    positional = node.args.vararg is not None
    if positional and not _passes(call, node.args.vararg.arg if node.args.vararg else ""):
        return signature
    if receiver is None and function.owner is not None:
        receiver = InstanceOf(function.owner)
    frame = frame_of(function.module, function.owner, node, receiver)
    found = infer(universe, call.func, frame)
    if len(found) != 1 or isinstance(found[0], SuperOf):
        return signature
    target = takes(universe, found[0])
    if not isinstance(target, Takes):
        return signature
    inner = target.signature
    given = {word.arg for word in call.keywords if word.arg}
    filled = sum(1 for one in call.args if not isinstance(one, ast.Starred))
    rest = [one for one in inner.parameters if one.name not in given]
    own = {one.name for one in signature.parameters}
    if not positional:
        rest = [Parameter(one.name, "keyword", one.required) for one in rest[filled:] if one.kind != "positional"]
    else:
        rest = rest[filled:]
        if any(one.kind != "keyword" for one in signature.parameters):
            rest = [Parameter(one.name, "keyword", one.required) for one in rest]
    more = [one for one in rest if one.name not in own]
    more += [Parameter(name, "keyword", required=False) for name in sorted(read - own - {one.name for one in more})]
    any_positional = signature.any_positional and (inner.any_positional or bool(own))
    return Signature((*signature.parameters, *more), any_positional, inner.any_keyword)


def _passes(call: ast.Call, name: str) -> bool:
    return any(
        isinstance(one, ast.Starred) and isinstance(one.value, ast.Name) and one.value.id == name for one in call.args
    )


def _spread(node: ast.FunctionDef | ast.AsyncFunctionDef, words: str) -> tuple[ast.Call, frozenset[str]] | None:
    """The one call that gets `**words`, and the keys read from it otherwise; None if more is done with it."""
    calls: list[ast.Call] = []
    read: set[str] = set()
    known = 0
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute), args=[key, *_]) if (
                name == words and attribute in _READS
            ):
                if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                    return None
                read.add(key.value)
                known += 1
            case ast.Compare(left=ast.Constant(value=str() as key), comparators=[ast.Name(id=name)]) if name == words:
                read.add(key)
                known += 1
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == words:
                read.add(key)
                known += 1
            case ast.Call(keywords=keywords):
                for word in keywords:
                    if word.arg is None and isinstance(word.value, ast.Name) and word.value.id == words:
                        calls.append(inner)
                        known += 1
            case _:
                pass
    mentioned = sum(1 for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id == words)
    if mentioned != known or len(calls) != 1:
        return None
    return calls[0], frozenset(read)
