"""The place that comes nearest to an anchor that is not there, for those whose upstream has moved."""

from __future__ import annotations

import ast
import heapq
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

from patcher.rewrite import names
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
)
from patcher.rewrite.outcome import Candidate
from patcher.rewrite.pattern import PLACE, pattern

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope

_ENOUGH = 0.6
_LIKELY = 40


def nearest(code: Code, scopes: Sequence[Scope], edit: Edit) -> Candidate | None:
    """The best candidate in `scopes`, or else in the whole file; where `within` is not there, the scope like it."""
    if not scopes and edit.within is not None:
        scope = _scope(code, edit.within)
        if scope is not None:
            return _candidate(code, scope)
    found = _nearest(code, scopes, edit) if scopes else None
    if found is None and edit.within is not None:
        found = _nearest(code, (code.tree,), edit)
    return None if found is None else _candidate(code, found)


def _candidate(code: Code, node: ast.AST) -> Candidate:
    line = node.lineno  # type: ignore[attr-defined]
    return Candidate(line, code.line(line).strip())


def _scope(code: Code, wanted: str) -> ast.AST | None:
    last = wanted.rpartition(".")[2]
    named = [name for name in code.scopes if name.rpartition(".")[2] == last]
    close = get_close_matches(wanted, named, 1, 0.0) or get_close_matches(wanted, list(code.scopes), 1, _ENOUGH)
    if not close:
        parent = wanted.rpartition(".")[0]
        close = [parent] if parent in code.scopes else []
    return code.scopes[close[0]][0] if close else None


def _nearest(code: Code, scopes: Sequence[Scope], edit: Edit) -> ast.AST | None:
    nodes = code.nodes(scopes)
    match edit:
        case MoveImport():
            return _import(nodes, edit.old)
        case RenameArgument() | RemoveArgument() | AddArgument():
            return _dotted(code, (node for node in nodes if isinstance(node, ast.Call)), edit.call, edit)
        case RenameAttribute():
            return _dotted(code, (node for node in nodes if isinstance(node, ast.Attribute)), edit.old, edit)
        case Replace():
            return _like(code, nodes, edit.pattern)
        case Insert(anchor=anchor):
            return _like(code, nodes, anchor) if anchor else None


def _ratio(one: str, two: str) -> float:
    return SequenceMatcher(None, one, two, autojunk=False).ratio()


def _best(scored: Iterable[tuple[float, ast.AST]], least: float) -> ast.AST | None:
    best: tuple[float, ast.AST] | None = None
    for score, node in scored:
        if score >= least and (best is None or score > best[0]):
            best = (score, node)
    return None if best is None else best[1]


def _import(nodes: Iterable[ast.AST], old: str) -> ast.AST | None:
    """The same name from elsewhere, else something else from the same module, else a similar import."""
    package, _, name = old.rpartition(".")

    def score(module: str, alias: ast.alias) -> float:
        full = f"{module}.{alias.name}" if module else alias.name
        alike = _ratio(old, full)
        if alias.name == name or alias.asname == name:
            return 2 + alike
        if module == package or full == package:
            return 1 + alike
        return alike

    scored: list[tuple[float, ast.AST]] = []
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = names.module(node) if isinstance(node, ast.ImportFrom) else ""
            scored.append((max(score(module, alias) for alias in node.names), node))
    return _best(scored, 0.75)


def _dotted(code: Code, nodes: Iterable[ast.AST], wanted: str, edit: Edit) -> ast.AST | None:
    """The same dotted name with other arguments, else one that ends alike, else one spelled alike."""
    table = names.imports(code.parents)
    last = wanted.rpartition(".")[2]
    seen: dict[str, float] = {}

    def score(node: ast.AST) -> float:
        dotted = node.func if isinstance(node, ast.Call) else node
        full = names.resolve(dotted, table)[0]
        text = ".".join(full[-1 - wanted.count(".") :])
        if text not in seen:
            seen[text] = _ratio(wanted, text) + (1 if full[-1] == last else 0)
        bonus = 0.0
        if isinstance(node, ast.Call):
            keys = {keyword.arg for keyword in node.keywords}
            wished = {getattr(edit, "old", None), getattr(edit, "new", None)}
            bonus = 0.5 if keys & wished and not isinstance(edit, AddArgument) else 0.0
        return seen[text] + bonus

    return _best(((score(node), node) for node in nodes), _ENOUGH + 0.1)


def _like(code: Code, nodes: Sequence[ast.AST], wanted: str) -> ast.AST | None:
    """The statement or expression of the same sort that is spelled most like a pattern."""
    read = pattern(wanted)
    if not read.body:
        return None
    target: ast.AST = read.expression or read.body[0]
    while isinstance(target, (ast.Await, ast.Expr)):
        target = target.value
    kinds = (ast.keyword, type(target)) if read.argument else (type(target),)
    mine = _words(target)
    if not mine:
        return None
    text = PLACE.sub("", ast.unparse(target))
    common = ((len(mine & _words(node)), -index) for index, node in enumerate(nodes) if isinstance(node, kinds))
    likely = [nodes[-index] for shared, index in heapq.nlargest(_LIKELY, common) if shared]

    def score(node: ast.AST) -> float:
        head = _words(node.func) if isinstance(node, ast.Call) and isinstance(target, ast.Call) else set()
        bonus = 0.5 if isinstance(target, ast.Call) and head & _words(target.func) else 0.0
        return bonus + _ratio(text, code.segment(node)[: 4 * len(text) + 80])

    return _best(((score(node), node) for node in likely), 0.4)


def _words(node: ast.AST) -> set[str]:
    """The names in the first lines of a node, metavariables left out."""
    words: set[str] = set()
    for below in ast.walk(node):
        for field in ("id", "attr", "arg", "name", "module"):
            value = getattr(below, field, None)
            if isinstance(value, str) and not value.startswith("__uky_"):
                words.add(value)
    return words
