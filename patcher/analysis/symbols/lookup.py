"""What those who read classes, parameters and lazily served names ask of the package that these are in.

A class's bases, for example, are expressions in its module: `class Worker(base.WorkerBase)`. `Symbols` answers; it asks
them in turn for members and parameters.
"""

from __future__ import annotations

from typing import Protocol

from patcher.analysis.bindings import Imported
from patcher.analysis.expressions import Expression
from patcher.analysis.symbols.definition import Class, Function, Module, Resolution, Variable
from patcher.analysis.symbols.sources import Modules


class Lookup(Protocol):
    """One package's symbols."""

    modules: Modules

    def expression(self, module: str, of: Expression) -> Resolution:
        """What a dotted expression at a module's top level stands for."""

    def imported(self, module: str, binding: Imported) -> Resolution:
        """What an import statement in a module binds."""

    def module_member(self, module: Module, name: str) -> Resolution:
        """The attribute `name` of a module."""

    def set_from_outside(self, owner: Class | Function, name: str) -> Variable | None:
        """An attribute that the module of a class or function sets on it after its definition."""
