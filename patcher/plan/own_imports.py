"""Imports that an edit writes: those of the tree's own modules must find something there.

A record for verl 0.6 may write `from verl.utils.npu_utils import pad_input`. A fork that has moved this module would
fail at the line, though the edit found its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from patcher.analysis.syntax import bound_names
from patcher.worktree import python
from patcher.worktree.verl_tree import PACKAGE

TreeLookup = Callable[[str], bool | None]
"""Whether the tree's package has a dotted name, `verl.utils.model.load`; None where that is unknown."""


_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, *([ast.match_case] if hasattr(ast, "match_case") else []))


@dataclass(frozen=True, slots=True)
class AbsentImport:
    """An edit would write an import of something that the tree does not have."""

    line: int
    name: str
    """Dotted, with the module: `verl.utils.npu_utils.pad_input`."""


def absent_import(text: str, lines: Iterable[int], has: TreeLookup) -> AbsentImport | None:
    """The first import on some lines of `text`, from 1, that would fail."""
    wanted = set(lines)
    shown = text.splitlines()
    if not any("import" in shown[line - 1] and PACKAGE in shown[line - 1] for line in wanted if line <= len(shown)):
        return None

    def fails(name: str) -> bool:
        return name.partition(".")[0] == PACKAGE and has(name) is False

    return next(_absent(_imports(text), fails, wanted), None)


@dataclass(frozen=True, slots=True)
class _Import:
    line: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Try:
    """A `try` with handlers. Its body may fail, and only then do the handlers run:

    try:
        from verl.new import f
    except ImportError:
        from verl.old import f
    """

    lines: range
    body: tuple[_Import | _Try, ...]
    handlers: tuple[_Import | _Try, ...]
    orelse: tuple[_Import | _Try, ...]
    finalbody: tuple[_Import | _Try, ...]


def _absent(
    found: Iterable[_Import | _Try], fails: Callable[[str], bool], lines: Container[int]
) -> Iterator[AbsentImport]:
    """Those of some imports, on some lines, that fail."""
    for one in found:
        if isinstance(one, _Import):
            if one.line in lines:
                yield from (AbsentImport(one.line, name) for name in one.names if fails(name))
            continue
        caught = any(_absent(one.body, fails, one.lines))
        yield from _absent(one.handlers if caught else one.orelse, fails, lines)
        yield from _absent(one.finalbody, fails, lines)


@lru_cache(maxsize=256)
def _imports(text: str) -> tuple[_Import | _Try, ...]:
    """What a text imports; nothing where it is no Python. Kept: each order of a fork's records asks again."""
    tree = _tree(text)
    return () if tree is None else tuple(_imports_below([tree]))


def _all(found: Iterable[_Import | _Try]) -> Iterator[_Import]:
    for one in found:
        if isinstance(one, _Import):
            yield one
        else:
            yield from _all((*one.body, *one.handlers, *one.orelse, *one.finalbody))


def _imports_below(nodes: Iterable[ast.AST]) -> Iterator[_Import | _Try]:
    for node in nodes:
        if isinstance(node, ast.Try) and node.handlers:
            parts = (node.body, node.handlers, node.orelse, node.finalbody)
            lines = range(node.body[0].lineno, node.handlers[0].lineno)
            yield _Try(lines, *(tuple(_imports_below(part)) for part in parts))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield _Import(node.lineno, tuple(_imported(node)))
        else:
            yield from _imports_below(one for one in ast.iter_child_nodes(node) if isinstance(one, _WITH_STATEMENTS))


def own_imports(text: str, lines: Iterable[int]) -> list[str]:
    """The dotted names that the imports on some lines of `text`, from 1, take from the tree's own package."""
    wanted = set(lines)
    found = (name for one in _all(_imports(text)) if one.line in wanted for name in one.names)
    return [name for name in found if name.partition(".")[0] == PACKAGE]


def module_files(name: str) -> tuple[str, str]:
    """Where the module of a dotted name may lie: `verl/utils/device.py` or `verl/utils/device/__init__.py`."""
    folder = name.rpartition(".")[0].replace(".", "/")
    return f"{folder}.py", f"{folder}/__init__.py"


def in_package(file: str, name: str) -> bool:
    """Whether a file is a module of the package that a name is taken from, whose `__init__.py` may pass on its names:

    verl/utils/tokenizer.py     def hf_processor(): ...
    verl/utils/__init__.py      from .tokenizer import *
    """
    folder, _, module = file.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")
    return file.endswith(".py") and module != "__init__" and folder == name.rpartition(".")[0].replace(".", "/")


def may_be_in(names: frozenset[str] | None, name: str) -> bool:
    """Whether `name` may be one of the names that `bound` found. False only where no statement binds it, nor might:

    from .all import *        def __getattr__(name): ...        a, b = both()        (globals() is not looked at)
    """
    return names is None or not {name, "*", "__getattr__"}.isdisjoint(names)


@lru_cache(maxsize=32)
def bound(text: str) -> frozenset[str] | None:
    """The names that a module of this text binds, at whatever depth it may; None where it is no Python."""
    tree = _tree(text)
    if tree is None:
        return None
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return frozenset(bound_names(tree.body)).union(names)


def _tree(text: str) -> ast.Module | None:
    try:
        return python.parse(text)
    except python.UnreadableError:
        return None


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    match node:
        case ast.Import(names=aliases):
            return [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            return [f"{module}.{alias.name}" for alias in aliases if alias.name != "*"] or [module]
        case _:
            return []
