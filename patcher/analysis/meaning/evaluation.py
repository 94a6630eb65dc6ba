"""Symbolic values -> meanings, and names of the tree followed through its modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.analysis.facts import Bound
from patcher.analysis.meaning.annotations import annotated_as
from patcher.analysis.meaning.meanings import (
    Container,
    InstanceOf,
    Meaning,
    Meanings,
    Outside,
    SuperOf,
    TreeClass,
    TreeFunction,
    TreeModule,
    TypeOf,
    united,
)
from patcher.analysis.meaning.members import lookup
from patcher.analysis.meaning.results import element_of, result_of
from patcher.analysis.symbols import Absent, Class, Module, Unknown, Variable
from patcher.analysis.values import Element, Instance, Member, Named, OneOf, Opaque, Result, Super, Value

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

_UNTOLD = Unknown("not followed")


def evaluate(universe: Universe, value: Value) -> Meanings:
    """What the value can be."""
    match value:
        case Named(dotted=dotted):
            return named(universe, dotted)
        case Member(of=of, name=name):
            return united(*(lookup(universe, one, name) for one in universe.evaluate(of)))
        case Result(of=of):
            return united(*(result_of(universe, one) for one in universe.evaluate(of)))
        case Instance(of=of):
            return united(*(_annotated(universe, one) for one in universe.evaluate(of)))
        case Element(of=of):
            return united(*(element_of(universe, one) for one in universe.evaluate(of)))
        case Super(of=of):
            return tuple(
                SuperOf(one, InstanceOf(one)) for one in universe.evaluate(of) if isinstance(one, Class | TreeClass)
            )
        case OneOf(values=values):
            return united(*(universe.evaluate(one) for one in values))
        case Opaque():
            return (_UNTOLD,)


def named(universe: Universe, dotted: str) -> Meanings:
    """What a dotted name stands for: in the tree, or in a package."""
    package = dotted.partition(".")[0]
    if package == universe.top:
        return _in_tree(universe, dotted)
    if package not in universe.names:
        return (Outside(dotted),)
    if package not in universe.target.packages:
        return (Absent("", package),)
    parts = dotted.split(".")
    symbols = universe.target.packages[package]
    # `from a.b import c` takes the module a.b, even where a package binds its own b to something else.
    for length in range(max(len(parts) - 1, 1), 0, -1):
        root = symbols.modules.find(".".join(parts[:length]))
        if isinstance(root, Module):
            break
    found: Meanings = (root,) if isinstance(root, Module) else (Absent("", package),)
    for name in parts[length:]:
        found = united(*(lookup(universe, one, name) for one in found))
    return found


def tree_member(universe: Universe, module: str, name: str) -> Meanings:
    """What a name means in a module of the tree."""
    return universe.once(("tree", module, name), lambda: _tree_member(universe, module, name), ())


def _annotated(universe: Universe, one: Meaning) -> Meanings:
    match one:
        case Class() | TreeClass():
            return (InstanceOf(one),)
        case TypeOf(of=of):
            return (InstanceOf(of),)
        case Variable(module=module, value=value) if value is not None:
            return annotated_as(universe, value, module)
        case Outside() | Unknown() | InstanceOf() | Container() | Absent():
            return (one,)
        case _:
            return (_UNTOLD,)


def _in_tree(universe: Universe, dotted: str) -> Meanings:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if universe.forest.has_module(module):
            if length < len(parts) and not universe.forest.may_hand_on(module):
                return (Outside(dotted),)
            found: Meanings = (TreeModule(module),)
            facts = universe.forest.module(module)
            rest = parts[length:]
            for known in range(len(rest), 1, -1):
                inner = ".".join(rest[:known])
                if facts is not None and (own := facts.classes.get(inner)) is not None:
                    found, rest = (TreeClass(module, own),), rest[known:]
                    break
                if facts is not None and (function := facts.functions.get(inner)) is not None:
                    found, rest = (TreeFunction(module, function),), rest[known:]
                    break
            for name in rest:
                found = united(*(lookup(universe, one, name) for one in found))
            return found
    return (_UNTOLD,)


def _tree_member(universe: Universe, module: str, name: str) -> Meanings:
    facts = universe.forest.module(module)
    if facts is None:
        inner = f"{module}.{name}"
        return (TreeModule(inner),) if universe.forest.has_module(inner) else (_UNTOLD,)
    found: list[Meanings] = []
    if name in facts.classes:
        found.append((TreeClass(module, facts.classes[name]),))
    if name in facts.functions:
        found.append((TreeFunction(module, facts.functions[name]),))
    found += [bound_to(universe, bound) for bound in facts.bindings.get(name, ())]
    if not found:
        for star in facts.stars:
            through = united(*(lookup(universe, one, name) for one in named(universe, star)))
            if through and not all(isinstance(one, Absent | Unknown) for one in through):
                return through
        if universe.forest.has_module(f"{module}.{name}"):
            return (TreeModule(f"{module}.{name}"),)
        return (_UNTOLD,)
    return there(united(*found))


def bound_to(universe: Universe, bound: Bound) -> Meanings:
    return universe.evaluate(bound.value)


def there(found: Meanings) -> Meanings:
    """Without what is absent on this target, if anything else is left."""
    present = tuple(one for one in found if not isinstance(one, Absent))
    return present or found
