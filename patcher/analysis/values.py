"""Where a value in the tree comes from, in symbols: read off one file, given a meaning later against any release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from patcher.analysis.model import Condition


@dataclass(frozen=True, slots=True)
class Named:
    """What a dotted name stands for: an import, or a definition of the tree itself (`verl.module.Class`)."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Member:
    of: Value
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """What calling a value gives, awaited if it is a coroutine: an instance if it is a class."""

    of: Value


@dataclass(frozen=True, slots=True)
class Instance:
    """Something annotated as the class `of`; `self` in a method."""

    of: Value


@dataclass(frozen=True, slots=True)
class Element:
    """What iterating over a value or subscripting it gives."""

    of: Value


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a method of the class `of`."""

    of: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of these, by the way the code takes. None of any: `None`, or a name that is not bound."""

    values: tuple[Value, ...]
    conditions: tuple[tuple[Condition, ...], ...] = ()
    """For each value those under which it is the one, as far as they are known; empty if none are."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Not followed: computed, a parameter without annotation, a literal."""


Value: TypeAlias = Named | Member | Result | Instance | Element | Super | OneOf | Opaque
