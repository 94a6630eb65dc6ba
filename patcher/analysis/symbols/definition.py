"""What a dotted name of a package leads to: a closed set, matched exhaustively; and what annotations say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import ClassHeader, FunctionHeader
from patcher.analysis.expressions import Expression, expression, is_none, last_name
from patcher.worktree.python import UnreadableError, parse_expression


@dataclass(frozen=True, slots=True)
class Module:
    """A module or package; `path` is None for a folder without `__init__.py`."""

    name: str
    path: Path | None
    folder: Path | None
    """Where its submodules lie, if it is a package."""


@dataclass(frozen=True, slots=True)
class Class:
    module: str
    qualname: str
    header: ClassHeader


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method, properties included; `owner` is the class that defines it."""

    module: str
    qualname: str
    header: FunctionHeader
    owner: Class | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An assigned name, a field, an enum member or an instance attribute.

    Two are equal if their values are one and the same: expressions of different kinds may be equal.
    """

    module: str
    qualname: str
    value: Expression | None = None
    annotation: Expression | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and (
            (self.module, self.qualname) == (other.module, other.qualname)
            and self.value is other.value
            and self.annotation is other.annotation
        )

    def __hash__(self) -> int:
        return hash((self.module, self.qualname))


@dataclass(frozen=True, slots=True)
class External:
    """A name that comes from outside the package; what it has is not known here."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is there, or whether anything is, cannot be decided without running the package."""

    reason: str
    symbol: str = ""
    """What it is that is not known, where that belongs to the package; dotted."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing by that `name` in `parent`, the longest part of the dotted name that is there."""

    parent: str
    name: str
    newer: str = ""
    """A later release that has it, where it came after this one; "" where that was not asked."""


Definition: TypeAlias = Module | Class | Function | Variable | External | Unknown | Absent


@dataclass(frozen=True, slots=True)
class Resolution:
    """A definition, and the names that re-export it on the way from the name asked for."""

    definition: Definition
    chain: tuple[str, ...] = ()
    alternatives: tuple[Definition, ...] = ()
    """What the name stands for instead under other conditions (`if`, `try`)."""


def reexported(module: Module, name: str, found: Resolution) -> Resolution:
    """What is found behind a name that re-exports it."""
    return Resolution(found.definition, (f"{module.name}.{name}", *found.chain), found.alternatives)


def full_name(definition: Definition) -> str:
    """The dotted name of the place where it is defined."""
    match definition:
        case Module(name=name) | External(name=name):
            return name
        case Class() | Function() | Variable():
            return f"{definition.module}.{definition.qualname}"
        case Absent(parent=parent, name=name):
            return f"{parent}.{name}"
        case Unknown():
            return ""


def class_expression(annotation: Expression) -> Expression | None:
    """The one class that an annotation names: `X | None`, `Optional[X]`, `"X"`, `Final[X]`."""
    match annotation:
        case ex.Name() | ex.Attribute():
            return annotation
        # An annotation in quotes.
        case ex.Constant(value=str() as text):
            try:
                return class_expression(expression(parse_expression(text)))
            except UnreadableError:
                return None
        case ex.BinOp(left=left, operator="|", right=right) if is_none(right):
            return class_expression(left)
        case ex.BinOp(left=left, operator="|", right=right) if is_none(left):
            return class_expression(right)
        # `Optional[X]` is an X; of any other generic, `Queue[X]`, the class is Queue.
        case ex.Subscript(of=ex.Name() | ex.Attribute() as of, key=key):
            kind = last_name(of)
            if kind in ("Optional", "ClassVar", "Final"):
                return class_expression(key)
            if kind == "Annotated" and isinstance(key, ex.Elements):
                return class_expression(key.values[0])
            return of
        case _:
            return None


def is_property(header: FunctionHeader) -> bool:
    """Whether a method is read like an attribute."""
    return not header.marks.isdisjoint(("property", "cached_property"))


def is_static(header: FunctionHeader) -> bool:
    """Whether a method gets neither the instance nor the class."""
    return "staticmethod" in header.marks
