"""What a scope binds to its names, as written."""

from __future__ import annotations

import ast
from typing import Any


class Bindings:
    """The names of a module, class, function or lambda, each with all that is ever bound to it.

    A binding is how (import, value, annotation, each, class, function, unknown) and what.
    """

    def __init__(self, node: ast.AST, file: str) -> None:
        self.node = node
        self.file = file
        self.is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        self.is_class = isinstance(node, ast.ClassDef)
        self.bound: dict[str, list[tuple[str, Any]]] = {}
        self._collect(node)

    def _collect(self, node: ast.AST) -> None:
        if self.is_function:
            arguments: ast.arguments = node.args  # type: ignore[attr-defined]
            for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                self._bind(each.arg, "annotation" if each.annotation else "unknown", each.annotation)
            for extra in (arguments.vararg, arguments.kwarg):
                if extra:
                    self._bind(extra.arg, "unknown", None)
        body = getattr(node, "body", [])
        for inner in body if isinstance(body, list) else [body]:
            self._statement(inner)

    def _bind(self, name: str, how: str, what: Any) -> None:
        self.bound.setdefault(name, []).append((how, what))

    def _statement(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bind(node.name, "class" if isinstance(node, ast.ClassDef) else "function", node)
                return
            case ast.Lambda():
                return
            case ast.Import(names=aliases):
                for alias in aliases:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._bind(alias.asname or whole, "import", (whole, None))
            case ast.ImportFrom(names=aliases, module=module, level=level):
                for alias in aliases:
                    self._bind(alias.asname or alias.name, "import", (self._absolute(module, level), alias.name))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                self._bind(name, "annotation", annotation)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self._bind(name, "value", value)
            case ast.For(target=ast.Name(id=name), iter=over) | ast.AsyncFor(target=ast.Name(id=name), iter=over):
                self._bind(name, "each", over)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if item.optional_vars:
                        self._target(item.optional_vars, None)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self._bind(name, "unknown", None)
                return
            case ast.ExceptHandler(name=str(name)):
                self._bind(name, "unknown", None)
        skipped = {ast.Assign: "targets", ast.AnnAssign: "target", ast.NamedExpr: "target"}
        if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.target, ast.Name):
            skipped = {ast.For: "target", ast.AsyncFor: "target"}
        for field, value in ast.iter_fields(node):
            if skipped.get(type(node)) == field or field == "optional_vars":
                continue
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    self._statement(inner)

    def _target(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(value, ast.Constant) and value.value is None:
                    return
                self._bind(name, "value" if value is not None else "unknown", value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._target(part, None)
            case ast.Starred(value=inner):
                self._target(inner, None)

    def _absolute(self, module: str | None, level: int) -> str:
        if level == 0:
            return module or ""
        parts = self.file.removesuffix(".py").split("/")
        return ".".join([*parts[: len(parts) - level], *([module] if module else [])])
