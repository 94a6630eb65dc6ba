"""Where a block of code leads: on, out of it, or to an exception."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether what follows the block never runs after it."""
    if not block:
        return False
    match block[-1]:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=body, orelse=orelse):
            return leaves(body) and leaves(orelse)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return leaves(body)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            through = (leaves(body) or leaves(orelse)) and all(leaves(handler.body) for handler in handlers)
            return through or leaves(final)
        case _:
            return False


def raises(block: Sequence[ast.stmt]) -> bool:
    """Whether the block ends in an exception on every path."""
    for statement in block:
        match statement:
            case ast.Raise():
                return True
            case ast.Return() | ast.Continue() | ast.Break():
                return False
            case ast.If(body=body, orelse=orelse):
                if raises(body) and raises(orelse):
                    return True
                if _may_leave(body) or _may_leave(orelse):
                    return False
            case ast.With(body=body) if raises(body):
                return True
            case _:
                pass
    return False


def _may_leave(block: Sequence[ast.stmt]) -> bool:
    return leaves(block) and not raises(block)


def catches(handler: ast.ExceptHandler) -> tuple[str, ...]:
    """The exceptions that a handler is for, as written."""
    match handler.type:
        case None:
            return ("BaseException",)
        case ast.Tuple(elts=kinds):
            return tuple(ast.unparse(kind) for kind in kinds)
        case kind:
            return (ast.unparse(kind),)


def swallowed(handlers: Sequence[ast.ExceptHandler]) -> tuple[str, ...]:
    """The exceptions that handlers take without raising again."""
    return tuple(name for handler in handlers if not raises(handler.body) for name in catches(handler))
