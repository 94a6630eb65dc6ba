"""Whether a file has nothing at all of what a moved import is about, so that `move-import` is not needed in it.

A fork that has rewritten a file may no longer use what the record imports anew. That there is no import to move does
not show it: the name may come in another way.

    importlib.import_module("vllm.worker.worker_base").WorkerWrapperBase      used
    from vllm.worker.worker_base import *                                     may be used
    from vllm.worker.worker_base import WorkerBase                            used, where the module itself is gone
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from patcher.rewrite import names
from patcher.rewrite.edits import Mark
from patcher.rewrite.locating import locate
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.sites import settle
from patcher.rewrite.source import parse

if TYPE_CHECKING:
    from patcher.rewrite.edits import MoveImport

_STRINGS = (cst.SimpleString, cst.ConcatenatedString)


def is_unused(text: str, edit: MoveImport, *, module_stays: bool) -> bool:
    """Whether neither the moved name is in the file, nor, where its old module is gone, that module."""
    source = parse(text)
    if isinstance(source, Unparseable):
        return False
    package, _, name = edit.old.rpartition(".")
    return not any(_mentions(node, package, name, module_stays=module_stays) for node in source.everything)


def can_be_moved(text: str, edit: MoveImport) -> bool:
    """Whether a file has an import, anywhere, that the edit would move; True where it cannot be read."""
    if edit.old.rpartition(".")[2] not in text:
        return False
    source = parse(text)
    if isinstance(source, Unparseable):
        return True
    return bool(settle(source, locate(source, (source.module,), replace(edit, within=None), Mark(""))).anchors)


def _mentions(node: cst.CSTNode, package: str, name: str, *, module_stays: bool) -> bool:
    """Whether a name, string or import speaks of the moved name or, where its old module is gone, of that."""
    last = package.rpartition(".")[2]
    match node:
        case cst.Name(value=found) if found == name:
            return True
        case cst.Attribute(attr=cst.Name(value=found)):
            gone = found == last and not module_stays and ".".join(names.dotted(node)) == package
            return found == name or gone
        case cst.SimpleString() | cst.ConcatenatedString() | cst.FormattedStringText():
            text = node.evaluated_value if isinstance(node, _STRINGS) else node.value
            return isinstance(text, str) and (name in text or (not module_stays and package in text))
        case cst.ImportFrom():
            return _imports(node, package, name, module_stays=module_stays)
        case cst.Import():
            return any(
                one in (name, f"{package}.{name}") or (not module_stays and f"{one}.".startswith(f"{package}."))
                for one in map(names.imported, names.aliases(node))
            )
    return False


def _imports(node: cst.ImportFrom, package: str, name: str, *, module_stays: bool) -> bool:
    found, star = {names.imported(alias) for alias in names.aliases(node)}, isinstance(node.names, cst.ImportStar)
    parent, _, last = package.rpartition(".")
    if name in found:
        return True
    if names.module(node) == package:
        return star or not module_stays
    return names.module(node) == parent and not module_stays and (star or last in found)
