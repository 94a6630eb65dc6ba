"""Attributes that only classes further down may have: looked for by name in the package's text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.symbols import Class, Module, Unknown

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

_MOST = 12
"""Files that are read to find a subclass."""


def may_have(universe: Universe, owner: Class, name: str) -> bool:
    """Whether a class that inherits from `owner` in its package defines the name; True too if too many might."""
    key = ("subclass", owner, name)
    return universe.once(key, lambda: _may_have(universe, owner, name), True)


def _may_have(universe: Universe, owner: Class, name: str) -> bool:
    modules = universe.symbols(owner.module).text.setters(name)
    return len(modules) > _MOST or any(_has_subclass(universe, module, owner, name) for module in modules)


def _has_subclass(universe: Universe, module: str, owner: Class, name: str) -> bool:
    from patcher.analysis.meaning.classes import ancestry

    symbols = universe.symbols(owner.module)
    home = symbols.modules.find(module)
    if not isinstance(home, Module):
        return False
    tree = symbols.modules.tree(home)
    if isinstance(tree, Unknown):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node is not owner.node:
            # A class inside a function or an `if` counts as one of the module's.
            one = Class(module, node.name, node)
            bases = ancestry(universe, one)[1:]
            if _defines(node, name) and any(isinstance(base, Class) and base.node is owner.node for base in bases):
                return True
    return False


def _defines(node: ast.ClassDef, name: str) -> bool:
    for inner in ast.walk(node):
        match inner:
            case ast.FunctionDef(name=own) | ast.AsyncFunctionDef(name=own) if own == name:
                return True
            case ast.Attribute(attr=own, ctx=ast.Store()) if own == name:
                return True
            case ast.Name(id=own, ctx=ast.Store()) if own == name:
                return True
            case _:
                pass
    return False
