"""What one file of a tree says, by its text alone: the values in it, what it uses of packages, and what it defines.

A reading of a file (`patcher.analysis.reading`) makes these values. They hold for every release: what a value means on
one release is found later (`patcher.analysis.meaning`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from patcher.analysis.expressions import Expression
from patcher.analysis.parameters import Signature
from patcher.packages.releases.kept import Packed


@dataclass(frozen=True, slots=True)
class Named:
    """What a dotted name stands for: an import, or a definition of the tree itself (`verl.module.Class`)."""

    dotted: str
    on_trial: bool = False
    """Imported where a test or a handler stands around: the tree reckons with the name not being there."""


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
class Subtype:
    """A class that is annotated as `type[X]`: X (`of`), or one that inherits from it."""

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
class Union:
    """Any of these, by the way the code takes. None of any: `None`, or a name that is not bound."""

    values: tuple[Value, ...]
    conditions: tuple[tuple[Condition, ...], ...] = ()
    """For each value those under which it is the one, as far as they are known; empty if none are."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Not followed: computed, a parameter without annotation, a literal."""


Value: TypeAlias = Named | Member | Result | Instance | Subtype | Element | Super | Union | Opaque


@dataclass(slots=True, eq=False)
class When:
    """Runs only if `test` is truthy (`holds`) or falsy (not `holds`).

    Not frozen, nor is `Bound`: a tree has 20,000 of them, and a frozen one takes twice the time to make.
    """

    test: Expression
    holds: bool
    assumed: bool = False
    """The other way ends in an exception that the code raises itself."""


@dataclass(frozen=True, slots=True)
class WhenRaised:
    """Stands in the handler of a `try`: runs only if something in the lines `first` to `last` of this file raises.

    try:                                  # first = last = the line of the import
        from vllm.new import A
    except ImportError:                   # catches = ("ImportError",)
        from vllm.old import A            # WhenRaised
    """

    first: int
    last: int
    catches: tuple[str, ...]


Condition: TypeAlias = When | WhenRaised


MOST_CONDITIONS = 150
"""How many conditions are kept of those that one place stands under; a place in verl stands under 10 at most.
With fewer of them code counts as what runs, so nothing is held to be guarded that is not."""


@dataclass(frozen=True, slots=True)
class Context:
    """When a use runs: in which function, under which conditions (outermost first), and what is caught around it."""

    function: str = ""
    """Qualified name; "" for code that runs on import (class bodies included)."""
    conditions: tuple[Condition, ...] = ()
    caught: tuple[str, ...] = ()
    """Exceptions that a `try` around it swallows, as written; "BaseException" for a bare `except`. A handler that
    raises again on every path swallows nothing."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword argument of a call, or a literal key of a dict that is passed with `**`."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Shape:
    """How a call passes its arguments."""

    positional: tuple[str, ...] = ()
    """One entry an argument: the name it goes by (`state` for `app.state` and for `state`), "" if it has none."""
    keywords: tuple[Keyword, ...] = ()
    any_positional: bool = False
    """`*args` of unknown length is passed: how many positional arguments there are is not known."""
    any_keyword: bool = False
    """`**kwargs` of unknown keys is passed."""
    sometimes: tuple[str, ...] = ()
    """Keywords that only some ways through the code pass; each has a use of its own, under its conditions."""
    partial: bool = False
    """`functools.partial`: what is required may come later."""


@dataclass(frozen=True, slots=True)
class ImportOf:
    """`import module` (name None) or `from module import name`; `module` is absolute."""

    module: str
    name: str | None


@dataclass(frozen=True, slots=True)
class MemberOf:
    """The attribute `name` is read of a value. `soft`: `getattr(x, name, default)` or `hasattr`, which cannot fail."""

    of: Value
    name: str
    soft: bool = False


@dataclass(frozen=True, slots=True)
class CallOf:
    of: Value
    shape: Shape


@dataclass(frozen=True, slots=True)
class MethodOf:
    """A method defined in a class of the tree (`owner`, dotted) whose bases may lead to a target's class."""

    owner: str
    name: str
    signature: Signature
    """Without `self`."""


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class EngineFlag:
    """An engine argument by its command-line or keyword name, underscores for dashes."""

    name: str
    option: bool = False
    """Given as `--name`, so that only what the command line takes will do."""


Sign: TypeAlias = Literal["", "+", "++", "~"]


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A hydra override `key=value` with the sign in front of it."""

    dotted: str
    value: str | None = None
    sign: Sign = ""
    entry: str = ""
    """The module that is run with it: `verl.trainer.main_ppo`. "": not known. With `dotted` empty, the entry itself."""
    config: str = ""
    """`--config-name`; "": the one that the entry point names."""
    groups: tuple[tuple[str, str], ...] = ()
    """What the same command picks from config groups: `("model_engine", "megatron")`."""


Need: TypeAlias = ImportOf | MemberOf | CallOf | MethodOf | EnvironmentVariable | EngineFlag | ConfigKey


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that the tree needs of another package. `line` (from 1) is that of the name or argument itself."""

    file: str
    line: int
    need: Need
    context: Context = Context()


@dataclass(slots=True, eq=False)
class Bound:
    """One way in which a name gets its value, and under which conditions."""

    value: Value
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class FunctionFacts:
    """A function or method. `result` is what its annotation or its return statements give.

    Syntax is not kept: a matrix holds the facts of many trees.
    """

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
    packed: Packed[tuple[Use, ...]] = field(default_factory=lambda: Packed(()))
    """What it uses."""
    bindings: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    """Names of the module's body: imports, assignments; classes and functions are below."""
    classes: Mapping[str, ClassFacts] = field(default_factory=dict)
    functions: Mapping[str, FunctionFacts] = field(default_factory=dict)
    """By qualified name; functions inside functions included, methods left to their class."""
    stars: tuple[str, ...] = ()
    problem: str = ""

    @property
    def uses(self) -> tuple[Use, ...]:
        return self.packed.value
