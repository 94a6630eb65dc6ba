"""Functions of Python itself that say something of names and values: what a call of them gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from patcher.analysis.model import Condition, ImportOf, MemberOf
from patcher.analysis.reading.annotations import annotated
from patcher.analysis.reading.collected import Collected, Item, Partial, element_of, texts
from patcher.analysis.reading.containers import updated
from patcher.analysis.reading.imports import import_named
from patcher.analysis.reading.shapes import Arguments, arguments, call
from patcher.analysis.reading.targets import is_definition, replaced
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import OPAQUE, in_standard_library, is_followed, one_of, plain
from patcher.analysis.values import Instance, Named, Super, Value

Values = dict[int, Value]
Read = Callable[[Walk, ast.Call, Values], Value]


def _getattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, *default] if is_followed(values[id(owner)]):
            of = plain(values[id(owner)])
            ways: list[tuple[Value, tuple[Condition, ...]]] = [(values[id(each)], ()) for each in default]
            for text, conditions in (names := texts(values[id(name)])):
                with walk.under(*conditions):
                    walk.use(node.lineno, MemberOf(of, text, soft=bool(default)))
                ways.append((walk.member(of, text), conditions))
            return one_of(ways) if names else OPAQUE
        case _:
            return OPAQUE


def _hasattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name] if is_followed(values[id(owner)]):
            for text, _ in texts(values[id(name)]):
                walk.use(node.lineno, MemberOf(plain(values[id(owner)]), text, soft=True))
        case _:
            pass
    return OPAQUE


def _setattr(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, new] if is_definition(values[id(owner)]):
            for text, _ in texts(values[id(name)]):
                replaced(walk, node.lineno, values[id(owner)], text, values[id(new)])
        case _:
            pass
    return OPAQUE


def _super(walk: Walk, node: ast.Call, values: Values) -> Value:
    of = values[id(node.args[0])] if node.args else walk.owner()
    return Super(of) if is_followed(of) else OPAQUE


def _type(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    value = values[id(node.args[0])] if len(node.args) == 1 else OPAQUE
    return value.of if isinstance(value, Instance) else OPAQUE


def _import(walk: Walk, node: ast.Call, values: Values) -> Value:
    value = import_named(walk, node, values)
    return Named(value.dotted.partition(".")[0]) if isinstance(value, Named) else OPAQUE


def _import_module(walk: Walk, node: ast.Call, values: Values) -> Value:
    return import_named(walk, node, values) or OPAQUE


def _mock(walk: Walk, node: ast.Call, values: Values) -> Value:
    """`patch("module.Class.name", new)`: fails where the name is not there."""
    match node.args:
        case [target, *new]:
            paths = texts(values[id(target)])
            for text, conditions in paths:
                parent, _, name = text.rpartition(".")
                module, _, last = parent.rpartition(".")
                if parent and not in_standard_library(parent):
                    with walk.under(*conditions):
                        walk.use(node.lineno, ImportOf(module, last) if module else ImportOf(last, None))
                        made = [values[id(each)] for each in new] if len(paths) == 1 else []
                        _mocked(walk, node, Named(parent), name, made)
        case _:
            pass
    return OPAQUE


def _mock_object(walk: Walk, node: ast.Call, values: Values) -> Value:
    match node.args:
        case [owner, name, *new] if is_definition(values[id(owner)]):
            for text, conditions in texts(values[id(name)]):
                with walk.under(*conditions):
                    _mocked(walk, node, values[id(owner)], text, [values[id(each)] for each in new])
        case _:
            pass
    return OPAQUE


def _mocked(walk: Walk, node: ast.Call, of: Value, name: str, new: list[Value]) -> None:
    made = any(keyword.arg == "create" for keyword in node.keywords)
    replaced(walk, node.lineno, of, name, new[0] if new else OPAQUE, soft=made)


def _dict(walk: Walk, node: ast.Call, values: Values) -> Value:
    return updated(walk, Collected(origin=id(node)), node, values)


def _same(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    """The first argument, or a container with the same elements."""
    first = node.args[0] if node.args else None
    return OPAQUE if first is None or isinstance(first, ast.Starred) else values[id(first)]


def _listed(walk: Walk, node: ast.Call, values: Values) -> Value:
    value = _same(walk, node, values) if node.args else Collected(origin=id(node))
    if isinstance(value, Collected):
        return replace(value, origin=id(node))
    element = element_of(value)
    return Collected((Item(None, element, node.lineno),), open=True) if is_followed(element) else OPAQUE


def _next(walk: Walk, node: ast.Call, values: Values) -> Value:
    return element_of(_same(walk, node, values))


def _enumerate(walk: Walk, node: ast.Call, values: Values) -> Value:
    pair = (Item(None, OPAQUE, node.lineno), Item(None, _next(walk, node, values), node.lineno))
    return Collected((Item(None, Collected(pair), node.lineno),), open=True)


def _gathered(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    """`zip`: of each argument one element, together; `asyncio.gather`: what each gives."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return OPAQUE
    zipped = isinstance(node.func, ast.Name) and node.func.id == "zip"
    given = [values[id(argument)] for argument in node.args]
    together = Collected(tuple(Item(None, element_of(v) if zipped else v, node.lineno) for v in given))
    return Collected((Item(None, together, node.lineno),), open=True) if zipped else together


def _partial(walk: Walk, node: ast.Call, values: Values) -> Value:
    if not node.args or isinstance(node.args[0], ast.Starred):
        return OPAQUE
    of = values[id(node.args[0])]
    if not is_followed(of):
        return OPAQUE
    given = arguments(walk, node, values)
    shape = replace(given.shape, positional=given.shape.positional[1:], partial=True)
    call(walk, node.lineno, of, Arguments(shape, given.sometimes))
    return Partial(of, shape)


def _cast(walk: Walk, node: ast.Call, values: Values) -> Value:  # noqa: ARG001
    return annotated(walk, node.args[0]) if len(node.args) == 2 else OPAQUE


BUILTINS: Mapping[str, Read] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "super": _super,
    "type": _type,
    "__import__": _import,
    "dict": _dict,
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"), _listed),
    "next": _next,
    "enumerate": _enumerate,
    "zip": _gathered,
}
LIBRARY: Mapping[str, Read] = {
    "importlib.import_module": _import_module,
    "functools.partial": _partial,
    "unittest.mock.patch": _mock,
    "unittest.mock.patch.object": _mock_object,
    "asyncio.gather": _gathered,
    **dict.fromkeys(
        ("asyncio.run", "asyncio.wait_for", "asyncio.create_task", "asyncio.ensure_future", "asyncio.shield"), _same
    ),
    **dict.fromkeys(("copy.copy", "copy.deepcopy"), _same),
    "typing.cast": _cast,
}
