"""Where `**kwargs` of a function go on to: bound there as well."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from typing import Any


def forwarded(value: Any, keyword: str) -> None:
    """Bind a keyword that only `**kwargs` takes to what they are passed on to. Raises TypeError where that refuses it.

    Only where all that the function does with them is to pass them to one function or class that its module names.
    """
    function: Any = vars(value).get("__init__") if isinstance(value, type) else value
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        space = vars(sys.modules[function.__module__])
    except (OSError, TypeError, SyntaxError, AttributeError, KeyError):
        return
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) or tree.args.kwarg is None:
        return
    name = tree.args.kwarg.arg
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _passes(node, name)]
    if any(isinstance(node, ast.Constant) and node.value == keyword for node in ast.walk(tree)) or len(calls) != 1:
        return
    if any(isinstance(node.ctx, ast.Store) for node in read):
        return
    target = calls[0].func
    if not isinstance(target, ast.Name) or not callable(space.get(target.id)):
        return
    try:
        signature = inspect.signature(space[target.id])
    except (TypeError, ValueError):
        return
    signature.bind_partial(**{keyword: None})


def _passes(call: ast.Call, name: str) -> bool:
    return any(
        each.arg is None and isinstance(each.value, ast.Name) and each.value.id == name for each in call.keywords
    )
