"""What a name in a file stands for: dotted names, resolved through the file's imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TypeAlias

Parts: TypeAlias = tuple[str, ...]
Imports: TypeAlias = Mapping[str, tuple[Parts, ...]]


def imports(nodes: Iterable[ast.AST]) -> Imports:
    """The full names that each imported local name may stand for."""
    table: dict[str, tuple[Parts, ...]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                full = tuple(alias.name.split("."))
                local, meant = (alias.asname, full) if alias.asname else (full[0], full[:1])
                table[local] = (*table.get(local, ()), meant)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                local = alias.asname or alias.name
                table[local] = (*table.get(local, ()), (*module(node).split("."), alias.name))
    return table


def module(node: ast.ImportFrom) -> str:
    """The module that names are imported from, with its leading dots."""
    return "." * node.level + (node.module or "")


def dotted(node: ast.AST) -> Parts:
    """The parts of `a.b.c`; where the chain starts at something else than a name, an empty first part."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return tuple(reversed(parts))


def resolve(node: ast.AST, table: Imports) -> tuple[Parts, ...]:
    """The full names that a dotted expression may stand for; the expression itself where nothing is imported."""
    parts = dotted(node)
    meant = table.get(parts[0])
    return tuple((*full, *parts[1:]) for full in meant) if meant else (parts,)


def ends_in(names: Iterable[Parts], tail: Parts) -> bool:
    return any(name[-len(tail) :] == tail for name in names)
