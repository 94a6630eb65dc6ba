"""Put what a function did in place of its call, where it did no more than pass on to another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.analysis.symbols import Function, Symbols, full_name


@dataclass(frozen=True, slots=True)
class Inlined:
    """The call in other words; `module` is where its function is to be imported from, "" for a method."""

    text: str
    name: str
    module: str = ""


def body_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr | None:
    """The one expression that a function returns, warnings and error handlers that raise again aside."""
    statements = [one for one in node.body if not _is_aside(one)]
    while len(statements) == 1 and isinstance(tried := statements[0], ast.Try):
        if tried.orelse or tried.finalbody or not all(_raises(handler) for handler in tried.handlers):
            return None
        statements = [one for one in tried.body if not _is_aside(one)]
    match statements:
        case [ast.Return(value=ast.Await(value=value))] if isinstance(node, ast.AsyncFunctionDef):
            return value
        case [ast.Return(value=ast.expr() as value)]:
            return value if not isinstance(node, ast.AsyncFunctionDef) else None
        case _:
            return None


def inlined(
    was: Function, call: ast.Call, receiver: str, before: Symbols, symbols: Symbols, owner: str
) -> Inlined | None:
    """What stands for `receiver.method(…)`; None unless the method passed on to what is still there unchanged."""
    body = body_of(was.node)
    if not isinstance(body, ast.Call):
        return None
    values = _bound(was.node.args, call, receiver)
    if values is None or not _each_once(body, values):
        return None
    match body.func:
        case ast.Name(id=name):
            found = before.expression(was.module, body.func).definition
            if not isinstance(found, Function) or found.owner is not None or found.node.name != name:
                return None
            path = full_name(found)
            if not _unchanged(found, path, before, symbols):
                return None
            return Inlined(_written(body, values), name, path.rpartition(".")[0])
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            then = before.resolve(f"{owner}.{name}").definition
            if not isinstance(then, Function) or not _unchanged(then, f"{owner}.{name}", before, symbols):
                return None
            return Inlined(_written(body, values), name)
        case _:
            return None


def _is_aside(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in ("warn", "warning", "warning_once", "warn_once")
        case _:
            return False


def _raises(handler: ast.ExceptHandler) -> bool:
    match handler.body[-1]:
        case ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.Name(id=name)):
            return name == handler.name
        case _:
            return False


def _unchanged(then: Function, path: str, before: Symbols, symbols: Symbols) -> bool:
    now = symbols.resolve(path).definition
    return isinstance(now, Function) and symbols.signature(now) == before.signature(then)


def _bound(args: ast.arguments, call: ast.Call, receiver: str) -> dict[str, ast.expr] | None:
    """The call's arguments by the method's parameters."""
    plain = [argument.arg for argument in (*args.posonlyargs, *args.args)]
    if not plain:
        return None
    values: dict[str, ast.expr] = {plain[0]: ast.parse(receiver, mode="eval").body}
    rest = plain[1:]
    positional = list(call.args)
    while rest and positional and not isinstance(positional[0], ast.Starred):
        values[rest.pop(0)] = positional.pop(0)
    named = {word.arg: word.value for word in call.keywords if word.arg is not None}
    spread = [word.value for word in call.keywords if word.arg is None]
    for name in (*rest, *(argument.arg for argument in args.kwonlyargs)):
        if name not in named or (positional and name in rest):
            return None
        values[name] = named.pop(name)
    if args.vararg is not None:
        match positional:
            case [ast.Starred(value=ast.Name() as value)]:
                values[args.vararg.arg] = value
            case _:
                if any(isinstance(one, ast.Starred) for one in positional):
                    return None
                values[args.vararg.arg] = ast.Tuple(elts=positional, ctx=ast.Load())
    elif positional:
        return None
    if args.kwarg is not None:
        if spread and (named or len(spread) > 1):
            return None
        keys: list[ast.expr | None] = [ast.Constant(value=name) for name in named]
        values[args.kwarg.arg] = spread[0] if spread else ast.Dict(keys=keys, values=list(named.values()))
    elif named or spread:
        return None
    return values


def _each_once(body: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Whether every argument is used, in one place; a plain name may be used more often."""
    used = [part.id for part in ast.walk(body) if isinstance(part, ast.Name) and part.id in values]
    return all(
        used.count(name) == 1 or (used.count(name) > 1 and isinstance(value, ast.Name)) or name == "self"
        for name, value in values.items()
    )


class _Filled(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.values[node.id]) if node.id in self.values else node


def _written(body: ast.expr, values: Mapping[str, ast.expr]) -> str:
    return ast.unparse(ast.fix_missing_locations(_Filled(values).visit(copy.deepcopy(body))))
