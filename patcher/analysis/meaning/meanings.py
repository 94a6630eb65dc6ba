"""What a value of the tree can turn out to be on one target: a closed set, and where an expression stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.bindings import FunctionHeader
from patcher.analysis.symbols import Absent, Class, Function, Module, Unknown, Variable
from patcher.analysis.symbols.definition import is_static
from patcher.analysis.uses import ClassFacts, FunctionFacts


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


Receiver: TypeAlias = InstanceOf | TypeOf | Class | TreeClass
"""What an attribute is asked of, and a method called on."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method as it is got from an instance or a class."""

    function: Function
    receiver: Receiver


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
class ElementGetter:
    """A method that gives what a list or mapping holds: `pop` and `get` one, `values` and `copy` (`every`) all."""

    of: Container
    every: bool


@dataclass(frozen=True, slots=True)
class Outside:
    """Something of a package that is not checked against, or of the standard library."""

    name: str


Meaning: TypeAlias = (
    Module | Class | Function | Variable | Absent | Unknown
    | TreeModule | TreeClass | TreeFunction | InstanceOf | TypeOf | Method | SuperOf | Container | ElementGetter
    | Outside
)  # fmt: skip
"""A `Variable` is there, but what it holds is not known. `Unknown` has a symbol if it is of a package that is checked
against, and none if it may be anything. `Absent` is what is not there on this target."""

Meanings: TypeAlias = tuple[Meaning, ...]


class TooFarError(RecursionError):
    """A use leads further than is looked: through 10,000 subclasses of each other, say. Python's own limit counts as
    the same, so that whoever judges a use has one exception to catch."""


def union(*parts: Meanings) -> Meanings:
    """All of them, each once."""
    return tuple(dict.fromkeys(one for part in parts for one in part))


@dataclass(frozen=True, slots=True)
class Frame:
    """A module's body, a class's (`owner`) or a function's; `receiver` is what its first parameter is bound to."""

    module: str
    owner: Class | None = None
    function: FunctionHeader | None = None
    receiver: Receiver | None = None


def without_absent(found: Meanings) -> Meanings:
    """Without what is absent on this target, if anything else is left."""
    present = tuple(one for one in found if not isinstance(one, Absent))
    return present or found


def class_of(meaning: Receiver) -> Class | TreeClass:
    return meaning.of if isinstance(meaning, InstanceOf | TypeOf) else meaning


def frame_of(module: str, owner: Class | None, function: FunctionHeader, receiver: Receiver | None) -> Frame:
    """The frame of a function's body: `cls` is the receiver's class."""
    # `cls` in a class method that is called on an instance is the class of the instance.
    if receiver is not None and is_class_method(function):
        kind = class_of(receiver)
        receiver = TypeOf(kind) if isinstance(receiver, InstanceOf | TypeOf) else kind
    elif isinstance(receiver, Class | TreeClass | TypeOf):
        receiver = InstanceOf(class_of(receiver))
    if is_static(function):
        receiver = None
    return Frame(module, owner, function, receiver)


def is_class_method(function: FunctionHeader) -> bool:
    implied = ("__new__", "__init_subclass__", "__class_getitem__")
    return function.name in implied or "classmethod" in function.marks
