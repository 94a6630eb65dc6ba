"""What an edit finds in a source: the places to change, and the places that have its effect already."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from patcher.rewriting.code import Code
from patcher.rewriting.marking import Splice


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that the edit would change, and how."""

    node: ast.AST
    splices: Callable[[], list[Splice]]
    effect: Callable[[ast.AST], bool] | None = None
    """Tells further nodes in another branch that stand for the effect at this one place."""


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
        others = [node for branch in _other_branches(code, anchor.node) for node in branch]
        if any(effect in others for effect in sites.effects):
            continue
        beside = [node for node in others if anchor.effect is not None and anchor.effect(node)]
        if beside:
            effects.append(beside[0])
        else:
            anchors.append(anchor)
    return Sites(tuple(anchors), tuple(sorted(dict.fromkeys(effects), key=code.start)))


def _other_branches(code: Code, node: ast.AST) -> list[list[ast.AST]]:
    """The nodes of the branches that run where the one around `node` does not, up to the function around it."""
    found: list[list[ast.AST]] = []
    child = node
    for parent in code.ancestors(node):
        branches: list[list[ast.AST]]
        match parent:
            case ast.If() | ast.IfExp():
                branches = [_listed(parent.body), _listed(parent.orelse)]
            case ast.Try():
                caught = [handler for handler in parent.handlers if _catches_import(handler)]
                branches = [[*parent.body], *([handler] for handler in caught)]
                if any(item is child for item in parent.orelse):
                    branches.append([*parent.orelse])
                    branches[0] = []
            case ast.Match():
                branches = [[case] for case in parent.cases]
            case _:
                branches = []
        if any(child is item for branch in branches for item in branch):
            others = [item for branch in branches if not any(child is one for one in branch) for item in branch]
            found += [[below for item in others for below in ast.walk(item)]]
        if isinstance(child, ast.stmt):
            found += [[*ast.walk(item)] for item in _returning_before(code, child)]
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            break
        child = parent
    return found


def _listed(value: list[ast.stmt] | ast.expr) -> list[ast.AST]:
    return [*value] if isinstance(value, list) else [value]


def _catches_import(handler: ast.ExceptHandler) -> bool:
    return True if handler.type is None else not isinstance(handler.type, ast.Constant)


def _returning_before(code: Code, statement: ast.stmt) -> list[ast.If]:
    """The `if`s before a statement in its block whose body leaves the block."""
    found: list[ast.If] = []
    for other in code.siblings(statement):
        if other is statement:
            break
        if isinstance(other, ast.If) and isinstance(other.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            found.append(other)
    return found
