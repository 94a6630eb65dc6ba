"""A class of constants that has another name now, told by the values that its members keep."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.analysis.symbols import Class, Module, Symbols, Unknown

_FEWEST = 3
"""Constants that a class must have before its values tell anything. A guess: many classes hold a 0 and a 1."""


@dataclass(frozen=True, slots=True)
class RenamedClass:
    """The class that took the place of another, and the names of the members that are called differently in it."""

    name: str
    members: Mapping[str, str]
    """Old names to new ones, where they differ."""


def renamed_constants(was: Class, before: Symbols, symbols: Symbols) -> RenamedClass | None:
    """The class of the same values in the same module, new there since `was` is gone; None unless there is one alone.

    `class Level: NONE = 0; PIECEWISE = 3` became `class Mode(IntEnum): NONE = 0; VLLM_COMPILE = 3`.
    """
    old = before.modules.holding(was.module).asked_of(was.header, _constants)
    module = symbols.modules.find(was.module)
    summary = symbols.modules.summary(module) if isinstance(module, Module) else Unknown("it is gone")
    if old is None or isinstance(summary, Unknown):
        return None
    found = [
        RenamedClass(name, {name: new[value] for value, name in old.items() if new[value] != name})
        for name, new in summary.asked(_classes_of_constants)
        if before.has(f"{was.module}.{name}") is False and new.keys() == old.keys()
    ]
    return found[0] if len(found) == 1 else None


def _classes_of_constants(tree: ast.Module) -> list[tuple[str, dict[str, str]]]:
    classes = [(node.name, _constants(node)) for node in tree.body if isinstance(node, ast.ClassDef)]
    return [(name, found) for name, found in classes if found is not None]


def _constants(node: ast.ClassDef) -> dict[str, str] | None:
    """Names by value; None where the class holds anything but constants and methods, or a value twice."""
    found: dict[str, str] = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                # 1 and True are equal, and not the same constant.
                if (key := repr(value)) in found:
                    return None
                found[key] = name
            case ast.Expr(value=ast.Constant()) | ast.FunctionDef() | ast.Pass():
                pass
            case _:
                return None
    return found if len(found) >= _FEWEST else None
