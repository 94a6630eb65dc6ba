"""Whether a file has nothing at all of what a moved import is about, so that the move cannot break it.

A fork that has rewritten a file may no longer use what the record imports anew. That there is no import to move does
not show it: the name may come in another way.

    importlib.import_module("vllm.worker.worker_base").WorkerWrapperBase      used
    from vllm.worker.worker_base import *                                     may be used
    from vllm.worker.worker_base import WorkerBase                            used, where the module itself is gone
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.rewrite import names
from patcher.rewrite.code import parse
from patcher.rewrite.edits import Mark
from patcher.rewrite.engine import locate
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.sites import settle

if TYPE_CHECKING:
    from patcher.rewrite.edits import MoveImport


def is_unused(source: str, edit: MoveImport, *, module_stays: bool) -> bool:
    """Whether neither the moved name is in the file, nor, where its old module is gone, that module."""
    code = parse(source.removeprefix("\ufeff"))
    if isinstance(code, Unparseable):
        return False
    package, _, name = edit.old.rpartition(".")
    return not any(_speaks_of(node, package, name, module_stays=module_stays) for node in code.parents)


def can_be_moved(source: str, edit: MoveImport) -> bool:
    """Whether a file has an import, anywhere, that the edit would move; True where it cannot be read."""
    name = edit.old.rpartition(".")[2]
    if name not in source:
        return False
    code = parse(source.removeprefix("\ufeff"))
    if isinstance(code, Unparseable):
        return True
    return bool(settle(code, locate(code, (code.tree,), replace(edit, within=None), Mark(""))).anchors)


def _speaks_of(node: ast.AST, package: str, name: str, *, module_stays: bool) -> bool:
    parent, _, last = package.rpartition(".")
    match node:
        case ast.Name(id=found) | ast.Attribute(attr=found) | ast.alias(name=found) if found == name:
            return True
        case ast.Attribute(attr=found) if found == last and not module_stays:
            return ".".join(names.dotted(node)) == package
        case ast.Constant(value=str(text)):
            return name in text or (not module_stays and package in text)
        case ast.ImportFrom() if names.module(node) == package:
            return not module_stays or any(alias.name == "*" for alias in node.names)
        case ast.ImportFrom() if names.module(node) == parent:
            return not module_stays and any(alias.name in (last, "*") for alias in node.names)
        case ast.Import():
            return any(
                alias.name == f"{package}.{name}" or (not module_stays and f"{alias.name}.".startswith(f"{package}."))
                for alias in node.names
            )
    return False
