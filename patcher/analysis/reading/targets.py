"""What is assigned to: names, attributes of `self`, items of containers, and methods put into foreign classes."""

from __future__ import annotations

import ast

from patcher.analysis.model import MemberOf
from patcher.analysis.reading.collected import Collected, Item, element_of
from patcher.analysis.reading.scope import field
from patcher.analysis.reading.walk import Walk
from patcher.analysis.reading.ways import OPAQUE, is_followed, one_of
from patcher.analysis.values import Instance, Member, Named, OneOf, Value


def assign(walk: Walk, target: ast.expr, value: Value, expression: ast.expr | None = None) -> None:
    """Give a target its value. `expression` is where the value comes from, if it is all of it."""
    match target:
        case ast.Name(id=name):
            walk.bind(name, value)
        case ast.Attribute():
            _attribute(walk, target, value)
        case ast.Subscript():
            _subscript(walk, target, value, expression)
        case ast.Starred(value=inner):
            assign(walk, inner, OPAQUE)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(walk, targets, value, expression)
        case _:
            pass


def _unpack(walk: Walk, targets: list[ast.expr], value: Value, expression: ast.expr | None) -> None:
    parts = expression.elts if isinstance(expression, (ast.Tuple, ast.List)) else []
    starred = any(isinstance(each, ast.Starred) for each in (*targets, *parts))
    ways = value.values if isinstance(value, OneOf) else (value,)
    tuples = [way for way in ways if isinstance(way, Collected) and len(way.items) == len(targets)]
    for position, target in enumerate(targets):
        if tuples and len(tuples) == len(ways) and not starred:
            part = parts[position] if len(parts) == len(targets) else None
            assign(walk, target, one_of((way.items[position].value, ()) for way in tuples), part)
        else:
            assign(walk, target, element_of(value))


def _attribute(walk: Walk, target: ast.Attribute, value: Value) -> None:
    of = walk.value(target.value)
    owner = of.of if isinstance(of, Instance) else of
    if isinstance(owner, Named) and owner.dotted == walk.scope.owner:
        draft = walk.classes[owner.dotted.removeprefix(f"{walk.module}.")]
        draft.attributes.setdefault(target.attr, []).append(walk.bound(value))
        walk.has_fields = walk.has_fields or isinstance(value, Collected)
        if isinstance(value, Collected) or field(target) in walk.scope.names:
            walk.scope.names[field(target)] = value if isinstance(value, Collected) else OPAQUE
    elif is_followed(of) and is_definition(of):
        replaced(walk, target.end_lineno or target.lineno, of, target.attr, value)


def is_definition(value: Value) -> bool:
    """Whether it is a module or class by its path, and not something made."""
    match value:
        case Named():
            return True
        case Member(of=of):
            return is_definition(of)
        case OneOf(values=values):
            return any(is_definition(each) for each in values)
        case _:
            return False


def replaced(walk: Walk, line: int, of: Value, name: str, value: Value, *, soft: bool = True) -> None:
    """`module.name = value` and `Class.name = value`: a patch. Where nothing of that name is there, nothing fails."""
    if is_followed(of):
        walk.use(line, MemberOf(of, name, soft=soft))
        becomes_method(walk, value, of)


def becomes_method(walk: Walk, function: Value, of: Value) -> None:
    """A function is put into a class."""
    for each in function.values if isinstance(function, OneOf) else (function,):
        if isinstance(each, Named) and each.dotted.startswith(f"{walk.module}."):
            known = walk.patched.get(each.dotted)
            walk.patched[each.dotted] = of if known is None else one_of(((known, ()), (of, ())))


def _subscript(walk: Walk, target: ast.Subscript, value: Value, expression: ast.expr | None) -> None:
    walk.contexts[id(target)] = walk.context
    of = walk.value(target.value)
    walk.value(target.slice)
    if isinstance(of, Collected):
        key = target.slice.value if isinstance(target.slice, ast.Constant) else None
        text = key if isinstance(key, str) else None
        item = Item(text, value, target.lineno, identifier(expression), walk.conditions)
        put(walk, target.value, added(of, item))


def added(container: Collected, item: Item) -> Collected:
    """With one more item; a key that is already there under other conditions may get its value either way."""
    if item.key is None:
        return container.adding(item, open_too=True)
    earlier = [known for known in container.items if known.key == item.key]
    if any(known.conditions == item.conditions[: len(known.conditions)] for known in earlier):
        return container
    kept = tuple(known for known in container.items if known not in earlier or known.conditions != item.conditions)
    return Collected((*kept, item), container.open, container.removed - {item.key}, container.origin)


def put(walk: Walk, holder: ast.expr, value: Value) -> None:
    """Note the new state of a container, in the scope whose variable it is."""
    name = holder.id if isinstance(holder, ast.Name) else field(holder) if isinstance(holder, ast.Attribute) else ""
    if name in walk.scope.names:
        walk.scope.names[name] = value


def identifier(node: ast.expr | None) -> str:
    """The name that an argument goes by: the last word of the expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Await(value=inner) | ast.Starred(value=inner):
            return identifier(inner)
        case _:
            return ""
