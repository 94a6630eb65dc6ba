"""Import statements, and the calls that import by name."""

from __future__ import annotations

import ast

from patcher.analysis.model import ImportOf
from patcher.analysis.reading.collected import texts
from patcher.analysis.reading.walk import Executors, Walk
from patcher.analysis.reading.ways import one_of
from patcher.analysis.values import Named, Value


def _import(walk: Walk, node: ast.Import) -> None:
    for alias in node.names:
        walk.use(alias.lineno, ImportOf(alias.name, None))
        if alias.asname:
            walk.bind(alias.asname, Named(alias.name))
        else:
            top = alias.name.partition(".")[0]
            walk.bind(top, Named(top))


def _import_from(walk: Walk, node: ast.ImportFrom) -> None:
    module = absolute(walk, node)
    for alias in node.names:
        walk.use(alias.lineno, ImportOf(module, alias.name))
        if alias.name == "*":
            walk.stars.append(module)
        else:
            walk.line = alias.lineno
            walk.bind(alias.asname or alias.name, Named(f"{module}.{alias.name}"))


def absolute(walk: Walk, node: ast.ImportFrom) -> str:
    """The module that an import is from, by its full name."""
    if not node.level:
        return node.module or ""
    package = walk.module.split(".")
    up = node.level - 1 if walk.file.endswith("__init__.py") else node.level
    base = package[: len(package) - up] if up else package
    return ".".join([*base, *([node.module] if node.module else [])])


def import_named(walk: Walk, node: ast.Call, values: dict[int, Value]) -> Value | None:
    """What `import_module("…")` gives; None if the name is not written there."""
    modules = texts(values[id(node.args[0])]) if node.args else ()
    for module, conditions in modules:
        with walk.under(*conditions):
            walk.use(node.lineno, ImportOf(module, None))
    return one_of((Named(module), conditions) for module, conditions in modules) if modules else None


IMPORTS: Executors = {ast.Import: _import, ast.ImportFrom: _import_from}
