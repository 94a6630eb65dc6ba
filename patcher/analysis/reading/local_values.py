"""Values and names that are followed within one file: unions by way taken, containers, and scopes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from patcher.analysis.uses import Condition, Element, Member, Named, Opaque, Result, Shape, Union, Value

OPAQUE = Opaque()
NOTHING = Union(())
"""`None`: nothing that has members."""

_MOST = 12
"""How many alternatives one value may have; with more it is opaque. Code that chooses by hand has two to four; longer
unions come from merging loops and tables, and each alternative multiplies the look-ups of every attribute."""
_OWN = frozenset(sys.stdlib_module_names) | {"builtins"}


def union_of(alternatives: Iterable[tuple[Value, tuple[Condition, ...]]]) -> Value:
    """The union of several alternatives, each with its conditions.

    Each value stands in it once, without conditions if several alternatives give it. `None` is left out.
    """
    found: dict[Value, tuple[Condition, ...]] = {}
    for value, conditions in alternatives:
        # The same value by two ways needs no condition any more:
        #     x = A if new else A
        for each, further in _flat(value):
            known = found.get(each)
            found[each] = conditions + further if known is None else ()
    if len(found) == 1:
        return next(iter(found))
    if len(found) > _MOST:
        return OPAQUE
    return Union(tuple(found), tuple(found.values()) if any(found.values()) else ())


def _flat(value: Value) -> Iterable[tuple[Value, tuple[Condition, ...]]]:
    if isinstance(value, Union):
        return zip(value.values, value.conditions or ((),) * len(value.values), strict=True)
    return ((value, ()),)


def plain(value: Value) -> Value:
    """The value without what only one function knows of it: a container becomes opaque."""
    if isinstance(value, Opaque):
        return OPAQUE
    if isinstance(value, Union) and any(isinstance(each, Opaque) and each != OPAQUE for each in value.values):
        return union_of((plain(each), conditions) for each, conditions in _flat(value))
    return value


def in_standard_library(dotted: str) -> bool:
    return dotted.partition(".")[0] in _OWN


def is_followed(value: Value) -> bool:
    """Whether the value may lead to a package, and not only to the standard library or to something computed."""
    kind = type(value)
    if kind is Named:
        return not in_standard_library(value.dotted)  # type: ignore[union-attr]
    if kind is Union:
        return any(is_followed(each) for each in value.values)  # type: ignore[union-attr]
    return not isinstance(value, Opaque)


@dataclass(frozen=True, slots=True)
class Item:
    """One element, or one value of a dict. `name`: what the element goes by when it is passed to a function."""

    key: str | None
    value: Value
    line: int
    name: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerValue(Opaque):
    """A list, tuple, set or dict whose elements are known; `open`: there may be others."""

    items: tuple[Item, ...] = ()
    open: bool = False
    removed: frozenset[str] = frozenset()
    origin: int = 0
    """Tells two containers apart, whatever was put into them since."""

    def adding(self, *items: Item, open_too: bool = False) -> ContainerValue:
        # An unconditional item replaces earlier ones of its key; a conditional one stands beside them.
        keys = {item.key for item in items if item.key is not None and not item.conditions}
        kept = tuple(item for item in self.items if item.key not in keys) if keys else self.items
        return replace(self, items=kept + items, open=self.open or open_too)

    def without(self, key: str | None) -> ContainerValue:
        """The container after one key was taken out. None: some unknown key."""
        if key is None:
            return self.escaped()
        kept = tuple(item for item in self.items if item.key != key)
        return replace(self, items=kept, removed=self.removed | {key})

    def escaped(self) -> ContainerValue:
        """After other code got hold of it, as in `prepare(kwargs)`: the elements stay, the keys are no longer known."""
        return replace(self, items=tuple(replace(item, key=None) for item in self.items), open=True)

    def joined(self, other: ContainerValue) -> ContainerValue:
        """The container after two branches of which either may have run."""
        removed = self.removed | other.removed
        items = list(self.items)
        items += [item for item in other.items if item not in items]
        kept = tuple(item for item in items if item.key not in removed)
        more = self.open or other.open or len(kept) < len(items)
        return ContainerValue(kept, more, removed, self.origin if self.origin == other.origin else 0)

    def under(self, conditions: tuple[Condition, ...]) -> ContainerValue:
        """The container with these conditions added to each item."""
        return replace(
            self,
            items=tuple(
                item
                if all(condition in item.conditions for condition in conditions)
                else replace(item, conditions=item.conditions + conditions)
                for item in self.items
            ),
        )

    def element(self, key: str | None = None) -> Value:
        if key is not None:
            found = [item.value for item in self.items if item.key == key]
            if found:
                return union_of((value, ()) for value in found)
        return union_of((item.value, ()) for item in self.items) if self.items else OPAQUE


@dataclass(frozen=True, slots=True)
class PartialValue(Opaque):
    """`functools.partial(of, …)`, with what it has been given so far."""

    of: Value
    shape: Shape


@dataclass(frozen=True, slots=True)
class TextValue(Opaque):
    """A literal that may be the name of something."""

    text: str


def texts(value: Value) -> tuple[tuple[str, tuple[Condition, ...]], ...]:
    """The texts that a value may be, with their conditions. Empty if one of the alternatives is not a known text."""
    if isinstance(value, TextValue):
        return ((value.text, ()),)
    if not isinstance(value, Union):
        return ()
    found = tuple((each.text, conditions) for each, conditions in _flat(value) if isinstance(each, TextValue))
    return found if len(found) == len(value.values) else ()


def element_of(value: Value, key: str | None = None) -> Value:
    """What iterating over a value, or subscripting it, gives."""
    match value:
        case ContainerValue():
            return value.element(key)
        case Opaque():
            return OPAQUE
        case Union():
            return union_of((element_of(each, key), conditions) for each, conditions in _flat(value))
        # `for key, value in mapping.items()`
        case Result(of=Member(of=mapping, name="items")):
            held = Element(Result(Member(mapping, "values")))
            return ContainerValue((Item(None, OPAQUE, 0), Item(None, held, 0)))
        case _:
            return Element(value)


Names = dict[str, Value]
Alternative = tuple[tuple[Condition, ...], Names]


class Scope:
    """One scope. `names` is the state at the point that the walk has come to."""

    __slots__ = ("exits", "generator", "kind", "names", "owner", "parent", "path", "results", "shared")

    def __init__(
        self,
        kind: Literal["module", "class", "function", "expression"],
        path: str,
        parent: Scope | None = None,
        names: Names | None = None,
        owner: str = "",
    ) -> None:
        self.kind = kind
        self.path = path
        """Qualified name of the class or function; "" for the module."""
        self.parent = parent
        self.names: Names = {} if names is None else names
        self.owner: str = owner or (parent.owner if parent is not None and kind != "module" else "")
        """Dotted name of the class that `self` and `super()` mean here."""
        self.shared: set[str] = set()
        """Names declared `global`."""
        self.results: list[Value] = []
        self.generator = False
        self.exits: list[Alternative] = []
        """The states in which the loop around this point was left or begun anew."""

    def find(self, name: str) -> Value | None:
        """What a name stands for; None for one of the built-ins, or one that nothing binds."""
        value = self.names.get(name)
        scope = self.parent
        while value is None and scope is not None:
            if scope.kind != "class":
                value = scope.names.get(name)
            scope = scope.parent
        return value

    def within(self, name: str) -> str:
        """The qualified name of something defined here."""
        return f"{self.path}.{name}" if self.path else name


def field_key(node: ast.Attribute) -> str:
    """The key under which the value of `self.attribute` is kept among the names, while one method is visited."""
    return f"self.{node.attr}"


def merged(alternatives: list[Alternative], module: str | None) -> Names:
    """The names where several branches meet. At module level (`module` is its name) a name that the branches disagree
    on
    stands for itself, so that its bindings keep their conditions."""
    if len(alternatives) == 1:
        return alternatives[0][1]
    names = dict(alternatives[0][1])
    differing = set()
    for _, others in alternatives[1:]:
        for name, value in others.items():
            known = names.setdefault(name, value)
            if known is not value:
                differing.add(name)
    for name in differing:
        found = [(alternative[name], conditions) for conditions, alternative in alternatives if name in alternative]
        value = together(found)
        # At module level the name stands for itself, so that each release takes the binding that works for it:
        #     try:
        #         from vllm.new import A
        #     except ImportError:
        #         from vllm.old import A
        itself = module is not None and is_followed(value) and value not in [each for each, _ in found]
        names[name] = Named(f"{module}.{name}") if itself else value
    return names


def together(found: Sequence[tuple[Value, tuple[Condition, ...]]]) -> Value:
    """The value where several branches meet: containers become one container with the items of all."""
    containers = [(value, conditions) for value, conditions in found if isinstance(value, ContainerValue)]
    # Two branches that fill the same dict are one dict with the items of both, each under its conditions:
    #     kwargs = {}
    #     if new:
    #         kwargs["seed"] = 1
    if len(containers) == len(found):
        return _joined(containers)
    return union_of(found)


def _joined(containers: Iterable[tuple[ContainerValue, tuple[Condition, ...]]]) -> ContainerValue:
    (joined, conditions), *others = containers
    for other, further in others:
        # Two dict literals, one a branch: the items of each hold only where its branch is taken. For one dict that both
        # branches fill, the items have their conditions already.
        if joined.origin != other.origin:
            joined, other = joined.under(conditions), other.under(further)
        joined = joined.joined(other)
    return joined
