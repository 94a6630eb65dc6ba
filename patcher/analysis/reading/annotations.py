"""What a value is, by its annotation."""

from __future__ import annotations

import ast

from patcher.analysis.reading.collected import Collected, Item
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import NOTHING, OPAQUE, is_followed, one_of
from patcher.analysis.values import Instance, Member, Named, OneOf, Value
from patcher.worktree.python import UnreadableError, parse_expression

_TRANSPARENT = {"Optional", "Annotated", "ClassVar", "Final", "Required", "NotRequired", "Awaitable", "InitVar"}
_CONTAINERS = {
    *("list", "List", "set", "Set", "frozenset", "FrozenSet", "tuple", "Tuple", "deque", "Deque"),
    *("Sequence", "MutableSequence", "Collection", "Iterable", "Iterator", "AsyncIterable", "AsyncIterator"),
    *("Generator", "AsyncGenerator"),
}
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict"}


def annotated(walk: Walk, node: ast.expr | None) -> Value:
    """What something so annotated is: an instance of a class, one of several, a container; opaque if it says little."""
    if node is None:
        return OPAQUE
    before, walk.silent = walk.silent, True
    value = _annotated(walk, node)
    walk.silent = before
    return value


def _annotated(walk: Walk, node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=None):
            return NOTHING
        case ast.Constant(value=str(text)):
            try:
                return _annotated(walk, parse_expression(text.strip()))
            except UnreadableError:
                return OPAQUE
        case ast.Name() | ast.Attribute():
            return _instance(walk.value(node))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return one_of(((_annotated(walk, left), ()), (_annotated(walk, right), ())))
        case ast.Subscript(value=head, slice=inner):
            return _generic(walk, head, inner)
        case _:
            return OPAQUE


def _instance(value: Value) -> Value:
    return Instance(value) if is_followed(value) and isinstance(value, (Named, Member, OneOf)) else OPAQUE


def _generic(walk: Walk, head: ast.expr, inner: ast.expr) -> Value:
    name = head.id if isinstance(head, ast.Name) else head.attr if isinstance(head, ast.Attribute) else ""
    arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if not arguments:
        return OPAQUE
    if name == "Union":
        return one_of((_annotated(walk, each), ()) for each in arguments)
    if name in _TRANSPARENT:
        return _annotated(walk, arguments[0])
    if name in ("type", "Type"):
        instance = _annotated(walk, arguments[0])
        return instance.of if isinstance(instance, Instance) else OPAQUE
    if name in ("tuple", "Tuple") and not isinstance(arguments[-1], ast.Constant):
        return _holding(walk, arguments)
    if name in _CONTAINERS:
        return _holding(walk, arguments[:1])
    if name in _MAPPINGS:
        return _holding(walk, arguments[-1:])
    return _instance(walk.value(head))


def _holding(walk: Walk, arguments: list[ast.expr]) -> Value:
    items = tuple(Item(None, _annotated(walk, each), each.lineno) for each in arguments)
    return Collected(items, open=True)
