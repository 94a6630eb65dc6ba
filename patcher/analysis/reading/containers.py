"""What the methods of lists and dicts do to the containers that a function fills."""

from __future__ import annotations

import ast

from patcher.analysis.reading.collected import Collected, Item
from patcher.analysis.reading.targets import added, identifier, put
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import OPAQUE
from patcher.analysis.values import Value

_READING = {"items", "keys", "values", "get", "copy", "index", "count", "union", "intersection", "difference"}


def method_of(walk: Walk, node: ast.Call, func: ast.Attribute, container: Collected, values: dict[int, Value]) -> Value:
    """The value of `container.method(…)`; the container's new state goes to the variable that holds it."""
    key = _key(node)
    first = values[id(node.args[0])] if node.args else OPAQUE
    changed: Collected | None = None
    given: Value = OPAQUE
    match func.attr:
        case "update":
            changed = updated(walk, container, node, values)
        case "append" | "add" | "insert" if node.args:
            last = node.args[-1]
            changed = container.adding(Item(None, values[id(last)], node.lineno, identifier(last), walk.conditions))
        case "extend":
            more = first if isinstance(first, Collected) else Collected(open=True)
            changed = container.adding(*more.items, open_too=more.open)
        case "setdefault":
            given = container.element(key)
            if key is None or key not in [item.key for item in container.items]:
                value = values[id(node.args[1])] if len(node.args) > 1 else OPAQUE
                changed = added(container, Item(key, value, node.lineno, "", walk.conditions))
        case "pop":
            given = container.element(key)
            changed = container.without(key)
        case "get":
            given = container.element(key)
        case "values" | "copy":
            given = container
        case "items":
            pairs = tuple(
                Item(None, Collected((Item(None, OPAQUE, node.lineno), item)), node.lineno) for item in container.items
            )
            given = Collected(pairs, open=True)
        case name if name not in _READING:
            changed = container.escaped()
        case _:
            pass
    if changed is not None:
        put(walk, func.value, changed)
    return given


def _key(node: ast.Call) -> str | None:
    match node.args:
        case [ast.Constant(value=str(key)), *_]:
            return key
        case _:
            return None


def updated(walk: Walk, container: Collected, node: ast.Call, values: dict[int, Value]) -> Collected:
    """The dict after `update(other, key=value)`; also what `dict(other, key=value)` makes."""
    for argument in node.args:
        other = values[id(argument)]
        if isinstance(other, Collected):
            for item in other.items:
                container = added(container, item)
            container = container.adding(open_too=other.open)
        else:
            container = container.adding(open_too=True)
    for keyword in node.keywords:
        value = values[id(keyword)]
        if keyword.arg is not None:
            name = identifier(keyword.value)
            container = added(container, Item(keyword.arg, value, keyword.lineno, name, walk.conditions))
        elif isinstance(value, Collected):
            for item in value.items:
                container = added(container, item)
            container = container.adding(open_too=value.open)
        else:
            container = container.adding(open_too=True)
    return container
