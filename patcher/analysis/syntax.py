"""Python text -> syntax, and quick ways through it: a check looks at a million nodes."""

from __future__ import annotations

import ast

_NO_PARTS = frozenset({"ctx", "op", "ops", "conversion", "kind", "type_comment", "id", "attr", "arg", "level"})
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The names of a kind's fields that hold nodes, once they were asked for."""


def parts(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, without operators and contexts."""
    kind = type(node)
    names = _PARTS.get(kind)
    if names is None:
        names = _PARTS[kind] = tuple(name for name in kind._fields if name not in _NO_PARTS)
    found: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def below(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, level by level, without operators and contexts."""
    found = [node]
    for one in found:
        found += parts(one)
    return found


def module_name(file: str) -> str:
    """`verl/a/__init__.py` -> `verl.a`."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
