"""libcst's nodes as this package looks at them: what means something, in the order of the text.

libcst has a field for every piece of white space and every comma. The walk here leaves those out; libcst's own
visitors and matchers go through them too, which takes 35 ms on a file of 600 lines, where this takes 1.4 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeAlias

import libcst as cst
from libcst import CSTNode

Scope: TypeAlias = cst.Module | cst.ClassDef | cst.FunctionDef
SCOPES = (cst.ClassDef, cst.FunctionDef)
BLOCKS = (cst.Module, cst.IndentedBlock)
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
"""What has lines of its own."""
STATEMENT_KINDS = frozenset(
    [
        *(cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef, cst.If, cst.For, cst.While, cst.With),
        *(cst.Try, cst.TryStar, cst.Match),
    ]
)
"""The same as classes, which is asked for with every node."""
TRIES = (cst.Try, cst.TryStar)
HANDLERS = (cst.ExceptHandler, cst.ExceptStarHandler)
IMPORTS = (cst.Import, cst.ImportFrom)

_TRIVIA = frozenset(
    [
        *("lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "bar", "at", "dot", "equal", "comma"),
        *(
            "semicolon",
            "colon",
            "first_colon",
            "second_colon",
            "asname_whitespace",
            "trailing_whitespace",
            "leading_lines",
        ),
        *("lines_after_decorators", "header", "footer", "indent", "encoding", "default_indent", "default_newline"),
        "has_trailing_newline",
    ]
)
_ORDER: Mapping[type, tuple[str, ...]] = {
    cst.FunctionDef: ("decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.Parameters: ("posonly_params", "posonly_ind", "params", "star_arg", "kwonly_params", "star_kwarg"),
    cst.Arg: ("keyword", "star", "value"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ListComp: ("elt", "for_in"),
    cst.DictComp: ("key", "value", "for_in"),
    cst.Raise: ("exc", "cause"),
}
"""The nodes whose fields libcst declares in another order than the text has them."""
_NAMES: Mapping[type, frozenset[str]] = {
    cst.Attribute: frozenset({"attr"}),
    cst.Arg: frozenset({"keyword"}),
    cst.Param: frozenset({"name"}),
    cst.FunctionDef: frozenset({"name"}),
    cst.ClassDef: frozenset({"name"}),
    cst.ImportFrom: frozenset({"module", "names", "relative"}),
    cst.Import: frozenset({"names"}),
}
"""Fields that hold a name and no expression: of `a.b(c=d)`, `b` and `c` are none."""
_LEAVES = (cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.Ellipsis, cst.BaseUnaryOp, cst.BaseBooleanOp)


@cache
def parts(kind: type[CSTNode]) -> tuple[str, ...]:
    """The fields of a kind of node that mean something, in the order of the text."""
    order = _ORDER.get(kind)
    return order or tuple(f.name for f in fields(kind) if f.name not in _TRIVIA and not f.name.startswith("whitespace"))


@cache
def _walked(kind: type[CSTNode]) -> tuple[str, ...]:
    kept = () if issubclass(kind, _LEAVES) else parts(kind)
    return tuple(name for name in kept if name not in _NAMES.get(kind, ()))


_is_kind = cache(issubclass)
"""libcst's nodes are abstract base classes: each `isinstance` of one calls Python code, 350,000 times in an `apply`."""


def only(nodes: Iterable[CSTNode], *kinds: type[CSTNode]) -> Iterator[Any]:
    """The nodes of some kinds, in order."""
    return (node for node in nodes if _is_kind(node.__class__, kinds))


def children(node: CSTNode) -> list[CSTNode]:
    """What is right below a node, mere names left out."""
    found: list[CSTNode] = []
    for name in _walked(node.__class__):
        value = getattr(node, name)
        if value.__class__ is list or value.__class__ is tuple:
            found += value
        elif _is_kind(value.__class__, CSTNode):
            found.append(value)
    return found


def walk(node: CSTNode) -> Iterator[CSTNode]:
    """A node and all below it, in the order of the text."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(children(node))


def statements(block: CSTNode) -> list[tuple[CSTNode, CSTNode]]:
    """The statements of a block, each with its line: `a; b` is two statements of one line."""
    if not isinstance(block, BLOCKS):
        return [(small, block) for small in block.body]  # type: ignore[attr-defined]
    return [
        (small, line)
        for line in block.body
        for small in (line.body if isinstance(line, cst.SimpleStatementLine) else (line,))
    ]


def index_of(items: Iterable[CSTNode], wanted: CSTNode) -> int:
    """The index of an item, by identity: two statements may be equal."""
    return next(index for index, item in enumerate(items) if item is wanted)


def last_inside(node: CSTNode) -> CSTNode:
    """The statement that a compound one ends with. A comment behind it in the block is none."""
    for name in ("finalbody", "orelse", "handlers", "cases", "body"):
        below = getattr(node, name, None) if not isinstance(node, cst.SimpleStatementLine) else None
        if below and not isinstance(node, cst.BaseExpression):
            return last_inside(below[-1] if isinstance(below, (list, tuple)) else below)
    return node


def bare(node: CSTNode) -> CSTNode:
    """An expression without the parentheses around it; those of a tuple or a generator are its own."""
    if isinstance(node, cst.BaseExpression) and node.lpar and not isinstance(node, (cst.Tuple, cst.GeneratorExp)):
        return node.with_changes(lpar=[], rpar=[])
    return node


def equal(one: CSTNode, two: CSTNode) -> bool:
    """Whether two nodes say the same, white space and comments left out."""
    if type(one) is not type(two):
        return False
    for name in parts(type(one)):
        a, b = getattr(one, name), getattr(two, name)
        if isinstance(a, CSTNode) and isinstance(b, CSTNode):
            if not equal(a, b):
                return False
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b) or not all(map(equal, a, b)):
                return False
        elif a != b:
            return False
    return True
