"""What only a module's text tells: what its classes set, which names stand under conditions, what annotations mean."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .isolation import Isolation, bound_by
from .state import UnknownError


@functools.cache
def source(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


@functools.cache
def _tree(module: str) -> ast.Module | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    if not path or not path.endswith(".py"):
        return None
    return ast.parse(Path(path).read_text(encoding="utf-8"))


def conditional(module: types.ModuleType) -> set[str]:
    """Names that a module binds only under a test or in a `try`, but not for type checkers alone."""
    tree = _tree(module.__name__)
    names: set[str] = set()
    for node in tree.body if tree else ():
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=rest):
                names |= {name for inner in rest for name in bound_by(inner)}
            case ast.If() | ast.Try() | ast.With():
                names |= bound_by(node)
    return names


def generated(module: str) -> bool:
    return (
        any(part.startswith("_") and part.endswith("C") for part in module.split(".")) or ".vllm_flash_attn" in module
    )


@functools.cache
def _typing_imports(module: str, isolation: Isolation) -> Mapping[str, Any]:
    tree = _tree(module)
    space: dict[str, Any] = {"__name__": module, "__package__": getattr(sys.modules.get(module), "__package__", None)}
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body):
                for statement in body:
                    if isinstance(statement, (ast.Import, ast.ImportFrom)):
                        code = compile(ast.Module([statement], []), "<typing>", "exec")
                        try:
                            isolation.run(functools.partial(exec, code, space))
                        except Exception:
                            continue
    return space


def hint(annotation: Any, module: str, isolation: Isolation) -> Any:
    """An annotation as a type; names that only type checkers import are imported now."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    space = {**_typing_imports(module, isolation), **vars(sys.modules[module])}
    try:
        found = eval(annotation, space)
    except Exception as error:
        raise UnknownError(f"annotation {annotation!r}: {error}") from error
    return hint(found, module, isolation) if isinstance(found, str) else found
