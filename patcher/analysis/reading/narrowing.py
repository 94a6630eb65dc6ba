"""What a test tells of a name: `isinstance(name, Class)`."""

from __future__ import annotations

import ast

from patcher.analysis.reading.collected import Collected
from patcher.analysis.reading.scope import Names
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import is_followed, one_of
from patcher.analysis.values import Instance, Value


def narrowed(walk: Walk, test: ast.expr, holds: bool, names: Names) -> Names:
    """The names where a test is known to hold, or not to; the same object if it tells nothing of them."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]) if holds:
            value = _instances(walk.quietly(kinds))
            return names if value is None else {**names, name: value}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrowed(walk, operand, not holds, names)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            for each in values:
                names = narrowed(walk, each, holds, names)
            return names
        case _:
            return names


def _instances(kinds: Value) -> Value | None:
    if isinstance(kinds, Collected) and not kinds.open and kinds.items:
        values = [_instances(item.value) for item in kinds.items]
        found = [value for value in values if value is not None]
        return one_of((value, ()) for value in found) if len(found) == len(values) else None
    return Instance(kinds) if is_followed(kinds) and not isinstance(kinds, Collected) else None
