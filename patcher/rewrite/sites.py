"""What an edit finds in a source: the places to change, and the places that have its effect already."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.rewrite.code import Code
    from patcher.rewrite.marking import Splice

TRIES: tuple[type[ast.AST], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that the edit would change, how, and which nodes in another branch are its effect made by hand."""

    node: ast.AST
    splices: Callable[[], list[Splice]]
    twin: Callable[[ast.AST], bool]


@dataclass(frozen=True, slots=True)
class Sites:
    """Anchors and nodes with the effect, in order."""

    anchors: tuple[Anchor, ...]
    effects: tuple[ast.AST, ...]


def settle(code: Code, sites: Sites) -> Sites:
    """Leave out the anchors that a hand edit kept for other versions, in another branch than the effect."""
    anchors: list[Anchor] = []
    effects = list(sites.effects)
    for anchor in sites.anchors:
        twin = next((node for node in _other_branches(code, anchor.node) if anchor.twin(node)), None)
        if twin is None:
            anchors.append(anchor)
        elif not any(effect is twin for effect in effects):
            effects.append(twin)
    return Sites(tuple(anchors), tuple(sorted(effects, key=code.start)))


def _other_branches(code: Code, node: ast.AST) -> Iterable[ast.AST]:
    """The nodes that run where the ones around `node` do not, up to the function around it."""
    child = node
    for parent in code.ancestors(node):
        for branch in _beside(parent, child):
            yield from ast.walk(branch)
        if isinstance(child, ast.stmt):
            for other in _after_leaving(code, child):
                yield from ast.walk(other)
        if isinstance(parent, _FUNCTIONS):
            return
        child = parent


def _beside(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    """The branches of a statement or expression beside the one that `child` is in; none for its condition."""
    branches: list[list[ast.AST]]
    match parent:
        case ast.If(body=body, orelse=orelse):
            branches = [[*body], [*orelse]]
        case ast.IfExp(body=value, orelse=other):
            branches = [[value], [other]]
        case ast.Match(cases=cases):
            branches = [[case] for case in cases]
        case ast.AST() if isinstance(parent, TRIES):
            body, handlers, orelse = (getattr(parent, name) for name in ("body", "handlers", "orelse"))
            tried = orelse if any(child is item for item in orelse) else body
            if any(child is item for item in handlers):
                tried = [*body, *orelse]
            branches = [[*tried], *([handler] for handler in handlers)]
        case _:
            return []
    mine = [branch for branch in branches if any(child is item for item in branch)]
    return [item for branch in branches if mine and branch is not mine[0] for item in branch]


def _after_leaving(code: Code, statement: ast.stmt) -> list[ast.stmt]:
    """What runs in place of a statement because an `if` beside it leaves the block."""
    block = code.siblings(statement)
    index = next(index for index, item in enumerate(block) if item is statement)
    before = [item for item in block[:index] if isinstance(item, ast.If) and _leaves(item.body)]
    leaving = isinstance(statement, ast.If) and _leaves(statement.body)
    return [*before, *(block[index + 1 :] if leaving else [])]


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return isinstance(block[-1], _LEAVING)
