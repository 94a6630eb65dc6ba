"""What an annotation or a decorator says of the value behind a name."""

from __future__ import annotations

import ast

from patcher.worktree.python import UnreadableError, parse_expression


def class_expression(annotation: ast.expr) -> ast.expr | None:
    """The one class that an annotation names: `X | None`, `Optional[X]`, `"X"`, `Final[X]`."""
    match annotation:
        case ast.Name() | ast.Attribute():
            return annotation
        case ast.Constant(value=str() as text):
            try:
                return class_expression(parse_expression(text))
            except UnreadableError:
                return None
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return class_expression(left)
        case ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=right):
            return class_expression(right)
        case ast.Subscript(value=ast.Name(id=kind) | ast.Attribute(attr=kind), slice=inner):
            if kind in ("Optional", "ClassVar", "Final"):
                return class_expression(inner)
            if kind == "Annotated" and isinstance(inner, ast.Tuple):
                return class_expression(inner.elts[0])
            return annotation.value
        case _:
            return None


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method is read like an attribute."""
    return any(ast.unparse(mark).rpartition(".")[2] in ("property", "cached_property") for mark in node.decorator_list)
