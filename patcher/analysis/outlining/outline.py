"""The skeleton of one file: what its bodies import, mention and assign, and under which conditions.

It is light, so that a whole tree can be gone through: syntax is kept only of tests and of what is assigned.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from patcher.analysis.model import Condition
from patcher.worktree.python import parse_expression


@dataclass(frozen=True, slots=True)
class Import:
    """`local` is the name that is bound; `name` is None for `import module`. `module` is absolute."""

    local: str
    module: str
    name: str | None
    line: int
    function: str

    @property
    def dotted(self) -> str:
        """What the local name stands for."""
        if self.name is not None:
            return f"{self.module}.{self.name}"
        return self.module if self.local != self.module.partition(".")[0] else self.local


@dataclass(slots=True, eq=False)
class Assigned:
    """One way in which a name gets its value."""

    written: ast.expr | bytes | Import | None
    """An expression is its text until it is asked for: few of a tree's are, and syntax takes much memory."""
    conditions: tuple[Condition, ...]

    @property
    def value(self) -> ast.expr | Import | None:
        """None: something that is not followed, such as a loop's variable."""
        if isinstance(self.written, bytes):
            self.written = parse_expression(b"(" + self.written + b"\n)")
        return self.written


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What a stretch of a body imports and mentions, all under the same conditions; each mention once."""

    conditions: tuple[Condition, ...]
    imports: tuple[Import, ...]
    called: tuple[str, ...]
    """Dotted names as written, such as `self.run` or `load`; `.run` where it is a computed value's attribute."""
    named: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    """Strings that may name something; in a table, with the strings of their key."""
    orderings: tuple[ast.Compare, ...]
    """Comparisons with `<`, `<=`, `>` or `>=` that may be of versions."""


@dataclass(slots=True, eq=False)
class Body:
    """A function, method or class body, or the module's own (`qualname` "")."""

    qualname: str
    first: int
    last: int
    parameters: tuple[str, ...] = ()
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    """Of what goes by the name of a configuration."""
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()
    owner: str = ""
    """The qualified name of the class that a method belongs to."""
    steps: tuple[Step, ...] = ()
    assigned: dict[str, list[Assigned]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    """Those under which the function is defined."""


@dataclass(slots=True, eq=False)
class Family:
    """A class: its bases as written, methods by name, and what its body and its methods on `self` assign."""

    qualname: str
    bases: tuple[str, ...]
    registered: tuple[str, ...] | None = None
    """What decorators, other than those that make a dataclass, are called and given, if there are any."""
    methods: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, list[tuple[str, Assigned]]] = field(default_factory=dict)
    """With the function that sets it; "" for the class body."""


@dataclass(eq=False)
class Outline:
    file: str
    module: str
    bodies: dict[str, Body]
    classes: dict[str, Family]
    stars: list[str]

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.module if self.file.endswith("/__init__.py") else self.module.rpartition(".")[0]
