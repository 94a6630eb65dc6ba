"""Whether a module binds names that its statements do not spell out, so that one may be there though none is seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.analysis.symbols.scope import for_type_checkers, replaces_module

_HINTS = (b"globals()", b"vars()", b"locals()", b"sys.modules", b"exec(", b"__dict__")
"""One of these stands in the text of every module that does."""


def binds_dynamically(tree: ast.Module, text: bytes) -> bool:
    """Whether the module stores into its own namespace by a computed name.

    `globals()[name] = value` (torch/__init__.py, for all that its C part offers), `globals().update(table)`,
    `setattr(sys.modules[__name__], name, value)`, `exec(source)`, and another object in the module's place.
    """
    return any(hint in text for hint in _HINTS) and any(map(_stores, _nodes(tree)))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                continue  # What these store they also return, and whoever resolves names follows them.
            case ast.If(test=test, orelse=orelse) if for_type_checkers(test) and replaces_module(orelse):
                continue  # The module that takes this one's place serves what type checkers are shown, and no more.
        yield node
        yield from _nodes(node)


def _stores(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=value, ctx=ast.Store()):
            return _is_namespace(value) or _is_itself(node)
        case ast.Attribute(value=value, ctx=ast.Store()):
            return _is_itself(value)  # sys.modules[__name__].__class__ = Lazy
        case ast.Call(func=ast.Attribute(value=value, attr="update" | "setdefault" | "__setitem__")):
            return _is_namespace(value)
        case ast.Call(func=ast.Name(id="setattr"), args=[value, *_]):
            return _is_itself(value)
        case ast.Call(func=ast.Name(id="exec")):
            return True
        case ast.AugAssign(target=ast.Call() as target):
            return _is_namespace(target)
        case _:
            return False


def _is_namespace(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="globals" | "vars" | "locals"), args=[]):
            return True
        case ast.Attribute(value=value, attr="__dict__"):
            return _is_itself(value)
        case _:
            return False


def _is_itself(node: ast.AST) -> bool:
    """`sys.modules[__name__]`: the module's own entry, not one of those that a lazy loader makes."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__")):
            return True
        case _:
            return False
