"""Whether decorators leave a function's parameters as they are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from patcher.analysis.meaning.annotations import type_named
from patcher.analysis.meaning.frame import Frame
from patcher.analysis.symbols import Class, External, Function

if TYPE_CHECKING:
    from patcher.analysis.meaning.universe import Universe

_KEEP = frozenset(
    [
        "staticmethod",
        "jit",
        "heuristics",
        "autotune",
        "classmethod",
        "property",
        "cached_property",
        "abstractmethod",
        "overload",
        "override",
        "final",
        "lru_cache",
        "cache",
        "wraps",
        "contextmanager",
        "asynccontextmanager",
        "no_grad",
        "inference_mode",
        "deprecated",
        "validator",
        "field_validator",
        "model_validator",
        "singledispatch",
        "total_ordering",
        "runtime_checkable",
        "no_type_check",
    ]
)
_OUTSIDE = ("torch.", "functools.", "contextlib.", "typing.", "typing_extensions.", "abc.", "builtins.", "torch_")


def changes_parameters(universe: Universe, function: Function) -> frozenset[str] | None:
    """Keywords that decorators take besides the function's own; None if they may change what it takes."""
    more: set[str] = set()
    for mark in function.node.decorator_list:
        called = mark.func if isinstance(mark, ast.Call) else mark
        if not isinstance(called, ast.Name | ast.Attribute):
            return None
        tail = called.id if isinstance(called, ast.Name) else called.attr
        if tail in _KEEP or tail in ("setter", "getter"):
            continue
        if not _keeps(universe, called, function):
            return None
        if isinstance(mark, ast.Call):
            more |= {
                node.value for node in ast.walk(mark) if isinstance(node, ast.Constant) and isinstance(node.value, str)
                and node.value.isidentifier()
            }  # fmt: skip
    return (
        frozenset(more) if any("deprec" in ast.unparse(mark) for mark in function.node.decorator_list) else frozenset()
    )


def _keeps(universe: Universe, called: ast.expr, function: Function) -> bool:
    match type_named(universe, called, Frame(function.module)):
        case External(name=name):
            return name.startswith(_OUTSIDE)
        case Function(node=node):
            return universe.once(("keeps", node), lambda: _returns_like(node), False)
        case Class():
            return False
        case _:
            return False


def _returns_like(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator wraps with `functools.wraps` or gives back what it is given."""
    given: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            given |= {argument.arg for argument in (*inner.args.posonlyargs, *inner.args.args)}
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id="wraps") | ast.Attribute(attr="wraps" | "update_wrapper") | ast.Name(id="update_wrapper"):
                return True
            case ast.Return(value=ast.Name(id=name)) if name in given:
                return True
            case _:
                pass
    return False
