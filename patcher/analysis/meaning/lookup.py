"""What inference, annotations and members ask of the program that they work on.

They call each other: the result of a call is a member's value, whose class an annotation tells. `Program` answers each
question once, keeps the answer, and ends a question that leads back to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Protocol, TypeAlias, TypeVar

from patcher.analysis.meaning.meanings import Meaning, Meanings, Outside, TreeClass
from patcher.analysis.project import Project
from patcher.analysis.symbols import Class, Resolution, Symbols, Unknown
from patcher.analysis.target import Target
from patcher.analysis.uses import Value

T = TypeVar("T")

Base: TypeAlias = Class | TreeClass | Outside | Unknown


class Lookup(Protocol):
    """One tree on one target."""

    @property
    def project(self) -> Project: ...

    @property
    def target(self) -> Target: ...

    @property
    def names(self) -> Collection[str]:
        """The import names of the packages that are checked against."""

    def symbols(self, module: str) -> Symbols:
        """The index of the package that a module belongs to; KeyError if it is not checked against."""

    def resolve(self, dotted: str) -> Resolution:
        """What a dotted name leads to, across packages."""

    def evaluate(self, value: Value) -> Meanings:
        """What a value of the tree can be. Empty: `None`, nothing else."""

    def lookup(self, of: Meaning, name: str) -> Meanings:
        """The attribute `name` of a meaning."""

    def ancestry(self, owner: Class | TreeClass) -> tuple[Base, ...]:
        """A class and its bases, in the order in which Python asks them."""

    def tree_member(self, module: str, name: str) -> Meanings:
        """What a name means in a module of the tree."""

    def once(self, key: Hashable, find: Callable[[], T], if_circular: T) -> T:
        """What `find` gives, kept under `key`; `if_circular` if it is asked for again while it is being found."""
