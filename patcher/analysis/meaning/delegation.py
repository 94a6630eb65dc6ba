"""Classes that hand attributes on: a `__getattr__` that asks another object."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.meaning.inference import frame_of, infer, statements
from patcher.analysis.meaning.meanings import InstanceOf, Meanings, Outside, united
from patcher.analysis.symbols import Absent, Class, Unknown
from patcher.analysis.symbols.classes import methods
from patcher.analysis.symbols.scope import FunctionNode

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe


def delegates(universe: Universe, owner: Class, name: str, receiver: InstanceOf) -> Meanings | None:
    """What the class's `__getattr__` gives for a name; None if that cannot be told."""
    own = {method.name: method for method in methods(universe.symbols(owner.module), owner)}
    node = own.get("__getattr__")
    if node is None or "__getattribute__" in own:
        return None
    asked = _asked(node)
    if asked is None:
        return None
    in_a_circle: Meanings | None = ()
    return universe.once(
        ("delegates", owner, name, receiver),
        lambda: _through(universe, owner, node, asked, name, receiver),
        in_a_circle,
    )


def _through(
    universe: Universe, owner: Class, node: FunctionNode, asked: ast.expr, name: str, receiver: InstanceOf
) -> Meanings | None:
    from patcher.analysis.meaning.members import lookup
    from patcher.analysis.meaning.subclasses import may_have

    frame = frame_of(owner.module, owner, node, receiver)
    parts: list[Meanings] = []
    for one in infer(universe, asked, frame):
        found = lookup(universe, one, name)
        if all(isinstance(inner, Absent) for inner in found) and isinstance(one, InstanceOf):
            if not one.exact and isinstance(one.of, Class) and may_have(universe, one.of, name):
                # It delegates in order to reach such classes.
                found = (Outside(f"{owner.module}.{owner.qualname}.{name}"),)
        elif any(isinstance(inner, Unknown) for inner in found):
            return None
        parts.append(found)
    return united(*parts) or None


def _asked(node: FunctionNode) -> ast.expr | None:
    """The object that `__getattr__` asks on every path that returns."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if len(arguments) != 2:
        return None
    key = arguments[1].arg
    asked: ast.expr | None = None
    for statement in statements(node.body):
        match statement:
            case ast.Return(
                value=ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Name(id=given)], keywords=[])
            ) if given == key and (asked is None or ast.dump(asked) == ast.dump(value)):
                asked = value
            case ast.Return():
                return None
            case _:
                pass
    return asked
