"""What expressions and statements say as they are written."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def may_name(text: str) -> bool:
    return 2 < len(text) < 160 and text.replace(".", "").replace(":", "").replace("_", "").isalnum()


def may_be_of_versions(node: ast.Compare) -> bool:
    """Whether a side is named after versions or like a constant, or a text."""
    for side in (node.left, *node.comparators):
        for part in ast.walk(side):
            match part:
                case ast.Name(id=name) | ast.Attribute(attr=name) if "ver" in name.lower() or name.isupper():
                    return True
                case ast.Constant(value=str()):
                    return True
                case _:
                    pass
    return False


def strings(node: ast.AST | None) -> tuple[str, ...]:
    """The strings in an expression."""
    if node is None:
        return ()
    return tuple(
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def written(node: ast.expr) -> str:
    """A dotted name as written; `.name` for an attribute of something computed; "" for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            inner = written(value)
            return f".{name}" if not inner or inner.startswith(".") else f"{inner}.{name}"
        case _:
            return ""


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing after these statements runs."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def is_typing(test: ast.expr) -> bool:
    return written(test).rpartition(".")[2] == "TYPE_CHECKING"


def caught(node: ast.expr | None) -> tuple[str, ...]:
    """The exceptions that a handler names, as written, without their modules."""
    match node:
        case None:
            return ("BaseException",)
        case ast.Tuple(elts=parts):
            return tuple(written(part).rpartition(".")[2] for part in parts)
        case _:
            return (written(node).rpartition(".")[2],)
