"""What a value of the tree can turn out to be on one target: a closed set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.facts import ClassFacts, FunctionFacts
from patcher.analysis.symbols import Absent, Class, Function, Module, Unknown, Variable


@dataclass(frozen=True, slots=True)
class TreeModule:
    name: str


@dataclass(frozen=True, slots=True)
class TreeClass:
    module: str
    facts: ClassFacts

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.facts.qualname}"


@dataclass(frozen=True, slots=True)
class TreeFunction:
    """A function of the tree, or one of its methods."""

    module: str
    facts: FunctionFacts


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """An instance of the class; `exact` if it was made by calling that class, else of a subclass perhaps."""

    of: Class | TreeClass
    exact: bool = False


@dataclass(frozen=True, slots=True)
class TypeOf:
    """The class, or one that inherits from it."""

    of: Class | TreeClass


@dataclass(frozen=True, slots=True)
class Method:
    """A method as it is got from an instance or a class."""

    function: Function
    receiver: InstanceOf | TypeOf | Class | TreeClass


@dataclass(frozen=True, slots=True)
class SuperOf:
    """`super()` in a method of `of`, called on `receiver`."""

    of: Class | TreeClass
    receiver: InstanceOf | TypeOf


@dataclass(frozen=True, slots=True)
class Container:
    """A list, mapping or stream of these (values of a mapping)."""

    elements: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """Something of a package that is not checked against, or of the standard library."""

    name: str


Meaning: TypeAlias = (
    Module | Class | Function | Variable | Absent | Unknown
    | TreeModule | TreeClass | TreeFunction | InstanceOf | TypeOf | Method | SuperOf | Container | Outside
)  # fmt: skip
"""A `Variable` is there, but what it holds is not known. `Unknown` has a symbol if it is of a package that is checked
against, and none if it may be anything. `Absent` is what is not there on this target."""

Meanings: TypeAlias = tuple[Meaning, ...]


class TooFarError(RecursionError):
    """A use leads further than is looked: through 10,000 subclasses of each other, say. Python's own limit counts as
    the same, so that whoever judges a use has one exception to catch."""


def united(*parts: Meanings) -> Meanings:
    """All of them, each once."""
    return tuple(dict.fromkeys(one for part in parts for one in part))
