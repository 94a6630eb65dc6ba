"""What an expression in a target's sources gives, as far as its syntax tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.analysis.meaning.annotations import annotated_as, class_of
from patcher.analysis.meaning.definitions import meaning_of
from patcher.analysis.meaning.frame import Frame
from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meanings,
    Outside,
    SuperOf,
    TreeClass,
    TypeOf,
    united,
)
from patcher.analysis.symbols import Absent, Class, Module, Unknown
from patcher.analysis.symbols.scope import FunctionNode, Imported

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

_UNTOLD = Unknown("computed")
_MOST = 6
"""Assignments to one local name that are looked at."""


def infer(universe: Universe, node: ast.expr, frame: Frame) -> Meanings:
    """What the expression gives."""
    return universe.once(("infer", node, frame), lambda: _infer(universe, node, frame), (_UNTOLD,))


def _infer(universe: Universe, node: ast.expr, frame: Frame) -> Meanings:
    from patcher.analysis.meaning.members import lookup
    from patcher.analysis.meaning.results import element_of, result_of

    match node:
        case ast.Constant(value=None):
            return ()
        case ast.Constant(value=value):
            return (Outside(f"builtins.{type(value).__name__}"),)
        case ast.JoinedStr():
            return (Outside("builtins.str"),)
        case ast.Name(id=name):
            return _name(universe, name, frame)
        case ast.Attribute(value=value, attr=attribute):
            return united(*(lookup(universe, one, attribute) for one in infer(universe, value, frame)))
        case ast.Call(func=ast.Name(id="super"), args=[]):
            if frame.owner is not None and isinstance(frame.receiver, InstanceOf | TypeOf):
                return (SuperOf(frame.owner, frame.receiver),)
            return (_UNTOLD,)
        case ast.Call(func=ast.Name(id="cast") | ast.Attribute(attr="cast"), args=[kind, _]):
            return annotated_as(universe, kind, frame.module, frame)
        case ast.Call(func=ast.Name(id="type"), args=[value]):
            found = infer(universe, value, frame)
            return tuple(TypeOf(one.of) if isinstance(one, InstanceOf) else _UNTOLD for one in found)
        case ast.Call(func=func):
            return united(*(result_of(universe, one) for one in infer(universe, func, frame)))
        case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
            return infer(universe, value, frame)
        case ast.IfExp(body=body, orelse=orelse):
            return united(infer(universe, body, frame), infer(universe, orelse, frame))
        case ast.BoolOp(values=values):
            return united(*(infer(universe, value, frame) for value in values))
        case ast.Subscript(value=value):
            return united(*(element_of(universe, one) for one in infer(universe, value, frame)))
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return (Container(united(*(infer(universe, part, frame) for part in parts[:_MOST]))),)
        case ast.Dict(values=values):
            return (Container(united(*(infer(universe, value, frame) for value in values[:_MOST]))),)
        case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.DictComp(value=item) | ast.GeneratorExp(elt=item):
            return (Container(infer(universe, item, frame)),)
        case ast.Lambda():
            return (Outside("types.LambdaType"),)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return (Outside("builtins.bool"),)
        case _:
            return (_UNTOLD,)


def _name(universe: Universe, name: str, frame: Frame) -> Meanings:
    function = frame.function
    if function is not None:
        arguments = [*function.args.posonlyargs, *function.args.args]
        if arguments and arguments[0].arg == name and frame.receiver is not None:
            return (frame.receiver,)
        for argument in (*arguments, *function.args.kwonlyargs):
            if argument.arg == name:
                if argument.annotation is None:
                    return (Unknown(f"the parameter {name}"),)
                return annotated_as(universe, argument.annotation, frame.module, frame)
        if (imported := local_import(function, name)) is not None:
            return meaning_of(universe, universe.symbols(frame.module).imported(frame.module, imported).definition)
        if local := _locals(function, name):
            parts = []
            for annotation, value in local[:_MOST]:
                if annotation is not None:
                    return annotated_as(universe, annotation, frame.module, frame)
                parts.append(infer(universe, value, frame) if value is not None else (_UNTOLD,))
            return united(*parts)
    elif frame.owner is not None:
        found = universe.symbols(frame.module).member(frame.owner, name).definition
        if not isinstance(found, Absent | Unknown):
            return meaning_of(universe, found)
    symbols = universe.symbols(frame.module)
    resolution = symbols.expression(frame.module, ast.Name(id=name, ctx=ast.Load()))
    parts = [meaning_of(universe, one) for one in (resolution.definition, *resolution.alternatives)]
    return united(*parts)


def local_import(function: FunctionNode, name: str) -> Imported | None:
    """The import inside a function that binds the name."""
    return _local_table(function)[0].get(name)


def _locals(function: FunctionNode, name: str) -> list[tuple[ast.expr | None, ast.expr | None]]:
    return _local_table(function)[1].get(name, [])


_Local = tuple[dict[str, Imported], dict[str, list[tuple["ast.expr | None", "ast.expr | None"]]]]


def _local_table(function: FunctionNode) -> _Local:
    """Imports and assignments of a function by name, kept with its syntax."""
    kept: _Local | None = getattr(function, "_locals", None)
    if kept is not None:
        return kept
    imports: dict[str, Imported] = {}
    values: dict[str, list[tuple[ast.expr | None, ast.expr | None]]] = {}
    for node in statements(function.body):
        match node:
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    module = "." * node.level + (node.module or "")
                    imports[alias.asname or alias.name] = Imported(module, alias.name)
            case ast.Import(names=aliases):
                for alias in aliases:
                    module = alias.name if alias.asname else alias.name.partition(".")[0]
                    imports[alias.asname or module] = Imported(module, None)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _note(values, target, None, value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                _note(values, target, annotation, value)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                _note(values, target, None, None)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    _note(values, item.optional_vars, None, item.context_expr)
            case _:
                pass
    function._locals = (imports, values)  # type: ignore[union-attr]
    return imports, values


def _note(
    values: dict[str, list[tuple[ast.expr | None, ast.expr | None]]],
    target: ast.expr | None,
    annotation: ast.expr | None,
    value: ast.expr | None,
) -> None:
    match target:
        case ast.Name(id=name):
            values.setdefault(name, []).append((annotation, value))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                _note(values, part, None, None)
        case _:
            pass


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions and classes inside it."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, part, []))
        for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from statements(handler.body)


def frame_of(
    module: str, owner: Class | None, function: FunctionNode, receiver: InstanceOf | TypeOf | Class | TreeClass | None
) -> Frame:
    """The frame of a function's body: `cls` is the receiver's class."""
    if receiver is not None and is_class_method(function):
        kind = class_of(receiver)
        receiver = TypeOf(kind) if isinstance(receiver, InstanceOf | TypeOf) else kind
    elif isinstance(receiver, Class | TreeClass | TypeOf):
        receiver = InstanceOf(class_of(receiver))
    if is_static(function):
        receiver = None
    return Frame(module, owner, function, receiver)


def is_class_method(function: FunctionNode) -> bool:
    return function.name in ("__new__", "__init_subclass__", "__class_getitem__") or _marked(function, "classmethod")


def is_static(function: FunctionNode) -> bool:
    return _marked(function, "staticmethod")


def _marked(function: FunctionNode, name: str) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == name for mark in function.decorator_list)


def is_module(meaning: object) -> bool:
    return isinstance(meaning, Module)
