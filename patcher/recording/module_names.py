"""Names that a file has newly, or has no more, and the changes of it in which they stand.

import sys                  two changes; the second fails when it runs without the first
...
    sys.stdout.flush()
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patcher.analysis.syntax import below, bound_names, own_nodes
from patcher.recording.hunks import Hunk
from patcher.worktree import python

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class _Names:
    bound: frozenset[str] = frozenset()
    """What the module binds, and as `self.flush` the methods and attributes of its classes."""
    lines: Mapping[int, set[str]] = field(default_factory=dict)
    """All names by the lines, from 1, in which they stand."""


def shared_names(before: str, after: str, hunks: Sequence[Hunk]) -> list[frozenset[str]]:
    """Of each change of a file of Python the names in it that the file has newly, or that it has no more."""
    sides = _names(before), _names(after)
    moved = sides[0].bound ^ sides[1].bound
    return [
        moved.intersection(
            name
            for side, (first, last) in zip(sides, hunk.sides, strict=True)
            for line in range(first + 1, last + 1)
            for name in side.lines.get(line, ())
        )
        for hunk in hunks
    ]


def _names(text: str) -> _Names:
    try:
        tree = python.parse(text)
    except python.UnreadableError:
        return _Names()
    lines: dict[int, set[str]] = defaultdict(set)
    bound = set(bound_names(tree))
    # `FIRST, LAST = 1, 2` and `with open(path) as file:` bind names too.
    bound.update(node.id for node in own_nodes(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    for node in below(tree):
        match node:
            case ast.Name(id=name):
                lines[node.lineno].add(name)
            case ast.alias(name=name, asname=other):
                lines[node.lineno].add(other or name.partition(".")[0])
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=context):
                lines[node.lineno].add(f"self.{name}")
                if isinstance(context, ast.Store):
                    bound.add(f"self.{name}")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                lines[node.lineno].add(name)
                methods = node.body if isinstance(node, ast.ClassDef) else []
                for method in (one for one in methods if isinstance(one, _FUNCTIONS)):
                    lines[method.lineno].add(f"self.{method.name}")
                    bound.add(f"self.{method.name}")
    return _Names(frozenset(bound), lines)
