"""Is one definition the other, elsewhere? By what it is and what it has, not by its name."""

from __future__ import annotations

import ast

from patcher.analysis.symbols import Class, Definition, Function, Symbols, Variable
from patcher.analysis.symbols.classes import methods

_ENOUGH = 0.5
"""Share of members or parameters that two versions of one thing have in common."""


def same_thing(old: Definition, old_symbols: Symbols, new: Definition, new_symbols: Symbols) -> bool:
    """Whether `new` may stand in for `old`: a class with its members, a function with its parameters."""
    match old, new:
        case Class(), Class():
            return _shared(_members(old_symbols, old), _members(new_symbols, new)) >= _ENOUGH
        case Function(), Function():
            return _shared(_parameters(old_symbols, old), _parameters(new_symbols, new)) >= _ENOUGH
        case Variable(value=before), Variable(value=after):
            return before is None or after is None or type(before) is type(after)
        case Variable(), Class() | Function():
            return True
        case _:
            return False


def _shared(old: frozenset[str], new: frozenset[str]) -> float:
    return len(old & new) / len(old) if old else 1.0


def _members(symbols: Symbols, owner: Class) -> frozenset[str]:
    fields = {
        node.target.id
        for node in owner.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return frozenset({method.name for method in methods(symbols, owner)} | fields)


def _parameters(symbols: Symbols, definition: Function) -> frozenset[str]:
    found = symbols.signature(definition)
    return frozenset(parameter.name for parameter in getattr(found, "parameters", ()))
