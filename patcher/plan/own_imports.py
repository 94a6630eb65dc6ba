"""Names of the tree's own modules that an edit writes, in imports and as `module.name`: the tree must have them.

A record for verl 0.6 may write `from verl.utils.npu_utils import pad_input`, or `tu.pad_input(x)` where the file has
`from verl.utils import npu_utils as tu`. A fork that has moved this would fail at the line, though the edit found its
place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from patcher.analysis.syntax import below, bound_names
from patcher.worktree import python
from patcher.worktree.verl_tree import PACKAGE

TreeLookup = Callable[[str], bool | None]
"""Whether the tree's package has a dotted name, `verl.utils.model.load`; None where that is unknown."""


_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, *([ast.match_case] if hasattr(ast, "match_case") else []))


@dataclass(frozen=True, slots=True)
class AbsentName:
    """An edit would write an import or a use of something that the tree does not have."""

    line: int
    name: str
    """Dotted, with the module: `verl.utils.npu_utils.pad_input`."""
    imported: bool = True
    """False for `tu.pad_input(x)`, where the module itself is imported."""


def absent_name(text: str, lines: Iterable[int], has: TreeLookup) -> AbsentName | None:
    """The first name on some lines of `text`, from 1, that would not be found: of an import, else of a use."""
    wanted = set(lines)
    if PACKAGE not in text:
        return None

    def fails(name: str) -> bool:
        return name.partition(".")[0] == PACKAGE and has(name) is False

    shown = text.splitlines()
    written = "\n".join(shown[line - 1] for line in wanted if line <= len(shown))
    if "import" in written and (found := next(_absent(_imports(text), fails, wanted), None)) is not None:
        return found
    # Parsing a file takes as long as the edit: only where a line has a dotted name whose first part may be imported.
    if not {*_ROOT.findall(written)} & {*_LISTED.findall(text)}:
        return None
    uses = (AbsentName(line, name, imported=False) for line, name in _uses(text) if line in wanted)
    return next((one for one in uses if fails(one.name)), None)


_ROOT = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\.[A-Za-z_]")
_LISTED = re.compile(r"(?:import|as|,|\()\s*([A-Za-z_]\w*)(?=\s*(?:,|\)|#|$|as\b))", re.MULTILINE)
"""Words that stand where an import lists its names; calls list theirs alike, so these are too many."""


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
) -> Iterator[AbsentName]:
    """Those of some imports, on some lines, that fail."""
    for one in found:
        if isinstance(one, _Import):
            if one.line in lines:
                yield from (AbsentName(one.line, name) for name in one.names if fails(name))
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


@lru_cache(maxsize=256)
def _uses(text: str) -> tuple[tuple[int, str], ...]:
    """Line and dotted name of each attribute that is read of what the file imports from the package."""
    tree = _tree(text)
    if tree is None:
        return ()
    nodes = below(tree)
    imported: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for local, name in _bindings(node):
                imported.setdefault(local, set()).add(name)
    # Only a name that is nothing else anywhere in the file: `def f(tu): ...` may be given anything.
    others = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    others |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    others |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    # `if hasattr(tu, "pad_input"): tu.pad_input(x)` asks first, and a `try` may be there for the case that it fails.
    asked = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    tried = {id(one) for node in nodes if isinstance(node, ast.Try) and node.handlers for one in _below(node.body)}
    return tuple(
        (node.lineno, f"{target}.{node.attr}")
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
        if node.value.id not in others and node.attr not in asked and id(node) not in tried
        for target in (imported.get(node.value.id, ()) if len(imported.get(node.value.id, ())) == 1 else ())
        if target.partition(".")[0] == PACKAGE
    )


def _below(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    return (one for node in nodes for one in ast.walk(node))


def _bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, and what each stands for: `import verl.utils` binds `verl`."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            yield (alias.name.partition(".")[0],) * 2


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
    return frozenset(bound_names(tree)).union(names)


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
