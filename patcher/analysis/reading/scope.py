"""Names and what they stand for, from the inside out, at one point of the code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Literal

from patcher.analysis.model import Condition
from patcher.analysis.reading.collected import Collected
from patcher.analysis.reading.ways import is_followed, one_of
from patcher.analysis.values import Named, Value

Names = dict[str, Value]
Way = tuple[tuple[Condition, ...], Names]


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
        self.exits: list[Way] = []
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


def field(node: ast.Attribute) -> str:
    """The key of `self.attribute` among the names: what one method has put there, for the rest of it."""
    return f"self.{node.attr}"


def merged(ways: list[Way], module: str | None) -> Names:
    """The names after ways that come together. On a module's level (`module`) a name that they disagree on stands for
    itself: its bindings keep their conditions."""
    if len(ways) == 1:
        return ways[0][1]
    names = dict(ways[0][1])
    differing = set()
    for _, others in ways[1:]:
        for name, value in others.items():
            known = names.setdefault(name, value)
            if known is not value:
                differing.add(name)
    for name in differing:
        found = [(way[name], conditions) for conditions, way in ways if name in way]
        value = together(found)
        itself = module is not None and is_followed(value) and value not in [each for each, _ in found]
        names[name] = Named(f"{module}.{name}") if itself else value
    return names


def together(found: Sequence[tuple[Value, tuple[Condition, ...]]]) -> Value:
    """One value for what several ways give: containers are one that has what either has."""
    containers = [(value, conditions) for value, conditions in found if isinstance(value, Collected)]
    if len(containers) == len(found):
        return _joined(containers)
    return one_of(found)


def _joined(containers: Iterable[tuple[Collected, tuple[Condition, ...]]]) -> Collected:
    (joined, conditions), *others = containers
    for other, further in others:
        if joined.origin != other.origin:
            joined, other = joined.under(conditions), other.under(further)
        joined = joined.joined(other)
    return joined
