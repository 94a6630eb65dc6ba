"""Values that are followed within one function only: containers, names as text, partials. Opaque to others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from patcher.analysis.model import Condition, Shape
from patcher.analysis.reading.ways import OPAQUE, one_of
from patcher.analysis.values import Element, OneOf, Opaque, Value


@dataclass(frozen=True, slots=True)
class Item:
    """One element, or one value of a dict. `name`: what the element goes by when it is passed to a function."""

    key: str | None
    value: Value
    line: int
    name: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected(Opaque):
    """A list, tuple, set or dict whose elements are known; `open`: there may be others."""

    items: tuple[Item, ...] = ()
    open: bool = False
    removed: frozenset[str] = frozenset()
    origin: int = 0
    """Tells two containers apart, whatever was put into them since."""

    def adding(self, *items: Item, open_too: bool = False) -> Collected:
        keys = {item.key for item in items if item.key is not None and not item.conditions}
        kept = tuple(item for item in self.items if item.key not in keys) if keys else self.items
        return replace(self, items=kept + items, open=self.open or open_too)

    def without(self, key: str | None) -> Collected:
        """After one key was taken out; None: any."""
        if key is None:
            return self.escaped()
        kept = tuple(item for item in self.items if item.key != key)
        return replace(self, items=kept, removed=self.removed | {key})

    def escaped(self) -> Collected:
        """After other code had it in its hands: elements are as before, keys are no longer known."""
        return replace(self, items=tuple(replace(item, key=None) for item in self.items), open=True)

    def joined(self, other: Collected) -> Collected:
        """What it is when either way may have been taken."""
        removed = self.removed | other.removed
        items = list(self.items)
        items += [item for item in other.items if item not in items]
        kept = tuple(item for item in items if item.key not in removed)
        more = self.open or other.open or len(kept) < len(items)
        return Collected(kept, more, removed, self.origin if self.origin == other.origin else 0)

    def under(self, conditions: tuple[Condition, ...]) -> Collected:
        """Each item only under these conditions too."""
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
                return one_of((value, ()) for value in found)
        return one_of((item.value, ()) for item in self.items) if self.items else OPAQUE


@dataclass(frozen=True, slots=True)
class Partial(Opaque):
    """`functools.partial(of, …)`, with what it has been given so far."""

    of: Value
    shape: Shape


@dataclass(frozen=True, slots=True)
class Text(Opaque):
    """A literal that may be the name of something."""

    text: str


def texts(value: Value) -> tuple[tuple[str, tuple[Condition, ...]], ...]:
    """The names that a value may be, and under which conditions; empty if that is not known of every way."""
    if isinstance(value, Text):
        return ((value.text, ()),)
    if not isinstance(value, OneOf):
        return ()
    ways = zip(value.values, value.conditions or ((),) * len(value.values), strict=True)
    found = tuple((way.text, conditions) for way, conditions in ways if isinstance(way, Text))
    return found if len(found) == len(value.values) else ()


def element_of(value: Value, key: str | None = None) -> Value:
    """What iterating over a value, or subscripting it, gives."""
    match value:
        case Collected():
            return value.element(key)
        case Opaque():
            return OPAQUE
        case OneOf(values=values, conditions=conditions):
            ways = conditions or ((),) * len(values)
            return one_of((element_of(each, key), way) for each, way in zip(values, ways, strict=True))
        case _:
            return Element(value)
