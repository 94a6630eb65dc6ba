"""What one file of the tree says, read from its text alone: uses, bindings, classes, functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patcher.analysis.model import Condition, Otherwise, Parameters, Use
from patcher.analysis.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """One way in which a name gets its value, and under which conditions."""

    value: Value
    conditions: tuple[Condition, ...] = ()
    attempt: Otherwise | None = None
    """It stands in the body of a `try`: not bound if one of these lines, all before it, raises."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionFacts:
    """A function or method. `result` is what its annotation or its return statements give.

    Syntax is not kept: a matrix holds the facts of many trees.
    """

    qualname: str
    parameters: Parameters
    result: Value
    is_property: bool = False
    abstract: bool = False
    ignores_keywords: bool = False
    """It takes `**kwargs` and never looks at them."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassFacts:
    """A class of the tree. `attributes` are those of its body and those that its methods set on `self`."""

    qualname: str
    line: int
    bases: tuple[Value, ...]
    attributes: Mapping[str, tuple[Bound, ...]]
    methods: Mapping[str, FunctionFacts]


@dataclass(frozen=True, slots=True, eq=False)
class FileFacts:
    """`problem` says why the file is no Python; then everything else is empty."""

    file: str
    module: str
    uses: tuple[Use, ...] = ()
    bindings: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    """Names of the module's body: imports, assignments; classes and functions are below."""
    classes: Mapping[str, ClassFacts] = field(default_factory=dict)
    functions: Mapping[str, FunctionFacts] = field(default_factory=dict)
    """By qualified name; functions inside functions included, methods left to their class."""
    stars: tuple[str, ...] = ()
    problem: str = ""
