"""What an expression of the tree can come to on a release, and what is asked of types."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from .stand_ins import StandInBase


class BrokenError(Exception):
    """The release refuses it; the message says how."""


class UnknownError(Exception):
    """Cannot be executed or is not evident; the message says why."""


@dataclasses.dataclass(frozen=True)
class Object:
    """Something at hand. `bound`: a function taken from a class as a method of an instance."""

    value: Any
    bound: bool = False
    owner: Any = None


@dataclasses.dataclass(frozen=True)
class Instance:
    """Some value of a type; nothing is constructed."""

    type: Any


State = Object | Instance

_PLACES = re.compile(r" \([^()]*/[^()]*\)")
typing_self = getattr(typing, "Self", None)
NOTHING = object()


def plain(annotation: Any) -> Any:
    """Without Optional and Annotated."""
    while True:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Annotated, typing.ClassVar, typing.Final, dataclasses.InitVar):
            annotation = arguments[0]
        elif origin in (typing.Union, types.UnionType) and len([a for a in arguments if a is not type(None)]) == 1:
            annotation = next(a for a in arguments if a is not type(None))
        elif isinstance(annotation, typing.TypeVar) and annotation.__bound__ is not None:
            annotation = annotation.__bound__
        else:
            return annotation


def same(one: State, other: State) -> bool:
    if type(one) is not type(other):
        return False
    return one.value is other.value if isinstance(one, Object) and isinstance(other, Object) else one == other


def said(error: BaseException) -> str:
    return _PLACES.sub("", f"{type(error).__name__}: {error}".splitlines()[0])[:160]


def quiet(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (UnknownError, BrokenError):
        return None


def origin_of(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def derives_from_stand_in(cls: type) -> bool:
    return StandInBase in cls.__mro__


def subclasses(cls: type) -> list[type]:
    """The loaded classes that derive from it."""
    found: list[type] = []
    derived: list[type] = type.__subclasses__(cls)
    for subclass in derived:
        found += [subclass, *subclasses(subclass)]
    return found


def annotated_names(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}
