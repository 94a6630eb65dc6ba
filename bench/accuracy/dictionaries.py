"""The keys of dicts that are passed with `**`."""

from __future__ import annotations

import ast

from bench.accuracy.scopes import Scope


def dictionary(node: ast.expr, scope: Scope) -> tuple[list[tuple[str, int]], bool] | None:
    """The literal keys, with their lines, of a dict that is passed with `**`, and whether these are all."""
    match node:
        case ast.Dict(keys=keys):
            literal = [
                (key.value, key.lineno) for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
            return literal, len(literal) == len(keys)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            named = [(each.arg, each.lineno) for each in keywords if each.arg is not None]
            return named, len(named) == len(keywords)
        case ast.Name(id=name) if name in scope.bound:
            if [how for how, _ in scope.bound[name]] != ["value"]:
                return None
            value = scope.bound[name][0][1]
            found = dictionary(value, scope) if not isinstance(value, ast.Name) else None
            touched = [inner for inner in ast.walk(scope.node) if isinstance(inner, ast.Name) and inner.id == name]
            return (found[0], found[1] and len(touched) == 2) if found else None
    return None
