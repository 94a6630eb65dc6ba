"""The place that is most like an anchor that was not found: what the error points at where upstream has moved it.

The same name elsewhere goes before a similar spelling, by difflib's ratio; what is hardly alike is not pointed at.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import names
from patcher.rewrite.edits import (
    AddArgument,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    ReplaceFunction,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    SyntaxEdit,
)
from patcher.rewrite.outcome import Candidate
from patcher.rewrite.pattern import PLACE, pattern
from patcher.rewrite.syntax import SCOPES, only

if TYPE_CHECKING:
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope

_ENOUGH = 0.6
"""How much two spellings have in common to be held for each other: difflib's own default."""
_LIKELY = 40
"""How many places are compared letter by letter, which takes long; they are those with the most names in common."""


def nearest(source: Source, scopes: Sequence[Scope], edit: SyntaxEdit) -> Candidate | None:
    """The best candidate in `scopes`, or else in the whole file; where `within` is not there, the scope like it."""
    if not scopes and edit.within is not None:
        scope = _scope(source, edit.within)
        if scope is not None:
            return _candidate(source, scope)
    found = _nearest(source, scopes, edit) if scopes else None
    if found is None and edit.within is not None:
        found = _nearest(source, (source.module,), edit)
    return None if found is None else _candidate(source, found)


def _candidate(source: Source, node: CSTNode) -> Candidate:
    first, _ = source.lines(node)
    if isinstance(node, SCOPES) and node.decorators:
        lines = range(first, len(source.starts) + 1)
        first = next((n for n in lines if re.match(r"\s*(async\s+def|def|class)\b", source.line(n))), first)
    return Candidate(first, source.line(first).strip())


def _scope(source: Source, wanted: str) -> CSTNode | None:
    last = wanted.rpartition(".")[2]
    named = [name for name in source.scopes if name.rpartition(".")[2] == last]
    close = get_close_matches(wanted, named, 1, 0.0) or get_close_matches(wanted, list(source.scopes), 1, _ENOUGH)
    if not close:
        parent = wanted.rpartition(".")[0]
        close = [parent] if parent in source.scopes else []
    return source.scopes[close[0]][0] if close else None


def _nearest(source: Source, scopes: Sequence[Scope], edit: SyntaxEdit) -> CSTNode | None:
    nodes = source.nodes(scopes)
    match edit:
        case MoveImport():
            return _import(nodes, edit.old)
        case RenameArgument() | RemoveArgument() | AddArgument():
            return _dotted(source, only(nodes, cst.Call), edit.call, edit)
        case RenameAttribute():
            return _dotted(source, only(nodes, cst.Attribute), edit.old, edit)
        case Replace():
            return _like(source, nodes, edit.pattern)
        case Insert(anchor=anchor):
            return _like(source, nodes, anchor) if anchor else None
        case SetDefault(parameter=name):
            return _parameter(nodes, name) or scopes[0]
        case SetParameter(old=old, new=new):
            return _parameter(nodes, re.split(r"[:=]", old or new or "")[0].strip(" *")) or scopes[0]
        case SetDecorator() | SetBase() | ReplaceFunction():
            return None if isinstance(scopes[0], cst.Module) else scopes[0]
        case SetEntry(container=container):
            return _container(source, nodes, container)


def _parameter(nodes: Iterable[CSTNode], name: str) -> CSTNode | None:
    """The parameter or field of a name like this one."""
    found: dict[str, CSTNode] = {}
    for node in nodes:
        if isinstance(node, cst.Param):
            found[node.name.value] = node
        elif isinstance(node, cst.AnnAssign) and isinstance(node.target, cst.Name):
            found[node.target.value] = node
    close = get_close_matches(name, found, 1, _ENOUGH)
    return found[close[0]] if close else None


def _container(source: Source, nodes: Sequence[CSTNode], name: str) -> CSTNode | None:
    """The dictionary or list of a name like this one."""
    from patcher.rewrite.entries import containers, name_of

    found = {name_of(source, node) or "": node for node in containers(source, nodes)}
    close = get_close_matches(name, found, 1, _ENOUGH)
    return found[close[0]] if close else None


def _ratio(one: str, two: str) -> float:
    return SequenceMatcher(None, one, two, autojunk=False).ratio()


def _best(scored: Iterable[tuple[float, CSTNode]], least: float) -> CSTNode | None:
    best: tuple[float, CSTNode] | None = None
    for score, node in scored:
        if score >= least and (best is None or score > best[0]):
            best = (score, node)
    return None if best is None else best[1]


def _import(nodes: Iterable[CSTNode], old: str) -> CSTNode | None:
    """The same name from elsewhere, else something else from the same module, else a similar import."""
    package, _, name = old.rpartition(".")

    def score(module: str, imported: str, local: str) -> float:
        full = f"{module}.{imported}" if module else imported
        alike = _ratio(old, full)
        if name in (imported, local):
            return 2 + alike
        return (1 if package in (module, full) else 0) + alike

    scored: list[tuple[float, CSTNode]] = []
    for node in nodes:
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            module = names.module(node) if isinstance(node, cst.ImportFrom) else ""
            pairs = [(names.imported(a), a.evaluated_alias or "") for a in names.aliases(node)] or [("*", "")]
            scored.append((max(score(module, *pair) for pair in pairs), node))
    return _best(scored, 0.75)


def _dotted(source: Source, nodes: Iterable[CSTNode], wanted: str, edit: SyntaxEdit) -> CSTNode | None:
    """The same dotted name with other arguments, else one that ends alike, else one spelled alike."""
    table = names.imports(source.everything)
    last = wanted.rpartition(".")[2]
    seen: dict[str, float] = {}

    def score(node: CSTNode) -> float:
        full = names.resolve(node.func if isinstance(node, cst.Call) else node, table)[0]
        text = ".".join(full[-1 - wanted.count(".") :])
        if text not in seen:
            seen[text] = _ratio(wanted, text) + (1 if full[-1] == last else 0)
        bonus = 0.0
        if isinstance(node, cst.Call):
            keys = {arg.keyword.value for arg in node.args if arg.keyword}
            wished = {getattr(edit, "old", None), getattr(edit, "new", None)}
            bonus = 0.5 if keys & wished and not isinstance(edit, AddArgument) else 0.0
        return seen[text] + bonus

    return _best(((score(node), node) for node in nodes), _ENOUGH + 0.1)


def _like(source: Source, nodes: Sequence[CSTNode], wanted: str) -> CSTNode | None:
    """The statement or expression of the same sort that is spelled most like a pattern."""
    read = pattern(wanted)
    if not read.body:
        return None
    target: CSTNode = read.expression or read.body[0]
    while isinstance(target, (cst.Await, cst.Expr)):
        target = target.expression if isinstance(target, cst.Await) else target.value
    kinds = (cst.Arg, type(target)) if read.argument else (type(target),)
    mine = _words(target)
    text = PLACE.sub("", read.module.code_for_node(target))
    common = ((len(mine & _words(node)), -index) for index, node in enumerate(nodes) if isinstance(node, kinds))
    likely = [nodes[-index] for shared, index in heapq.nlargest(_LIKELY, common) if shared]

    def score(node: CSTNode) -> float:
        head = _words(node.func) if isinstance(node, cst.Call) and isinstance(target, cst.Call) else set()
        bonus = 0.5 if isinstance(target, cst.Call) and head & _words(target.func) else 0.0
        return bonus + _ratio(text, source.code(node).strip()[: 4 * len(text) + 80])

    return _best(((score(node), node) for node in likely), 0.4)


def _words(node: CSTNode) -> set[str]:
    """The names in a node, metavariables left out."""
    words: set[str] = set()
    stack = [node]
    while stack:
        below = stack.pop()
        if isinstance(below, cst.Name):
            words.add(below.value)
        stack += below.children
    return {word for word in words if not word.startswith("__uky_")}
