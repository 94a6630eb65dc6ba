"""The opposite of a flag's value, as source text."""

from __future__ import annotations

import ast

_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Compare)


def opposite(value: ast.expr, text: str) -> str:
    """`not value`, without a `not` too many."""
    match value:
        case ast.Constant(value=bool() as flag):
            return str(not flag)
        case ast.UnaryOp(op=ast.Not(), operand=inner) if isinstance(inner, _TIGHT):
            return ast.unparse(inner)
        case _ if isinstance(value, _TIGHT):
            return f"not {text}"
        case _:
            return f"not ({text})"
