"""Values by the way that the code takes: put together, and taken for what others can follow."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from patcher.analysis.model import Condition
from patcher.analysis.values import Named, OneOf, Opaque, Value

OPAQUE = Opaque()
NOTHING = OneOf(())
"""`None`: nothing that has members."""

_MOST = 12
_OWN = frozenset(sys.stdlib_module_names) | {"builtins"}


def one_of(ways: Iterable[tuple[Value, tuple[Condition, ...]]]) -> Value:
    """One value for several ways: each once, `None` left out, those that agree without a condition."""
    found: dict[Value, tuple[Condition, ...]] = {}
    for value, conditions in ways:
        for each, further in _flat(value):
            known = found.get(each)
            found[each] = conditions + further if known is None else ()
    if len(found) == 1:
        return next(iter(found))
    if len(found) > _MOST:
        return OPAQUE
    return OneOf(tuple(found), tuple(found.values()) if any(found.values()) else ())


def _flat(value: Value) -> Iterable[tuple[Value, tuple[Condition, ...]]]:
    if isinstance(value, OneOf):
        return zip(value.values, value.conditions or ((),) * len(value.values), strict=True)
    return ((value, ()),)


def plain(value: Value) -> Value:
    """The value without what is known of it in one function only."""
    if isinstance(value, Opaque):
        return OPAQUE
    if isinstance(value, OneOf) and any(isinstance(each, Opaque) and each != OPAQUE for each in value.values):
        return one_of((plain(each), conditions) for each, conditions in _flat(value))
    return value


def in_standard_library(dotted: str) -> bool:
    return dotted.partition(".")[0] in _OWN


def is_followed(value: Value) -> bool:
    """Whether it may lead to a package that a tree is checked against."""
    kind = type(value)
    if kind is Named:
        return not in_standard_library(value.dotted)  # type: ignore[union-attr]
    if kind is OneOf:
        return any(is_followed(each) for each in value.values)  # type: ignore[union-attr]
    return not isinstance(value, Opaque)
