"""The uses of a package in a tree: a walk of its own over the syntax, so that labels do not share `check`'s omissions.

What a value is, is written down as an expression that the witness evaluates on a release:
["import", module, name or null], ["attr", of, name], ["result", of call], ["instance", of annotation],
["each" | "item", of], ["oneof", [expressions]].
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.dictionaries import dictionary
from bench.accuracy.scopes import Scope, Trees

Expression = Any


@dataclass(frozen=True, slots=True)
class Use:
    """`kind`: import, attribute, call or override. `keywords`: name and line. `arguments`: the names that positional
    arguments go by, "" without one. `asked`: `hasattr` is asked for it before."""

    file: str
    line: int
    kind: str
    symbol: str
    probe: list[Any]
    keywords: tuple[tuple[str, int], ...] = ()
    arguments: tuple[str, ...] = ()
    shape: dict[str, Any] | None = None
    asked: bool = False


def uses(root: Path, packages: tuple[str, ...]) -> Iterator[Use]:
    """Every use below `root`/verl of the packages, by import name."""
    trees = Trees(root, packages)
    seen = set()
    for path in sorted((root / "verl").rglob("*.py")):
        text = path.read_bytes()
        if not any(package.encode() in text for package in packages):
            continue
        file = path.relative_to(root).as_posix()
        scope = trees.file(file)
        if scope is None:
            continue
        for use in _Walk(file, scope, trees).uses():
            key = (use.line, use.kind, use.symbol, repr(use.probe))
            if (file, key) not in seen:
                seen.add((file, key))
                yield use


class _Walk:
    def __init__(self, file: str, scope: Scope, trees: Trees) -> None:
        self.file = file
        self.top = scope
        self.trees = trees
        self.found: list[Use] = []
        body = scope.node.body if isinstance(scope.node, ast.Module) else []
        self.evaluated = not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in body)

    def uses(self) -> list[Use]:
        for node in self.top.node.body:  # type: ignore[attr-defined]
            self._visit(node, self.top)
        return self.found

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.If(test=test, orelse=rest) if _type_checking(test):
                self._all(rest, scope)
                return
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._import(alias, alias.name, None)
            case ast.ImportFrom(level=0, module=str(module), names=aliases):
                for alias in aliases:
                    self._import(alias, module, alias.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, scope)
                return
            case ast.Lambda():
                self._all([*node.args.defaults, *(each for each in node.args.kw_defaults if each)], scope)
                self._visit(node.body, scope.child(node))
                return
            case ast.ClassDef():
                self._class(node, scope)
                return
            case ast.AnnAssign(annotation=annotation, value=value, target=target):
                if self.evaluated and not scope.is_function:
                    self._visit(annotation, scope)
                self._all([value, target] if value else [target], scope)
                return
            case ast.Attribute(ctx=ast.Load()):
                self._attribute(node, scope)
            case ast.Call():
                self._call(node, scope)
        self._all(ast.iter_child_nodes(node), scope)

    def _all(self, nodes: Any, scope: Scope) -> None:
        for node in nodes:
            self._visit(node, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        arguments = node.args
        self._all([*node.decorator_list, *arguments.defaults, *(each for each in arguments.kw_defaults if each)], scope)
        if self.evaluated:
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            self._all([each.annotation for each in every if each.annotation], scope)
            self._all([node.returns] if node.returns else [], scope)
        self._all(node.body, scope.child(node))

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self._all([*node.decorator_list, *node.bases, *(each.value for each in node.keywords)], scope)
        inner = scope.child(node)
        for base in inner.target_bases():
            for method in node.body:
                if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and not method.name.startswith("__"):
                    self._override(method, base)
        self._all(node.body, inner)

    def _override(self, method: ast.FunctionDef | ast.AsyncFunctionDef, base: Expression) -> None:
        if method.decorator_list:
            return
        arguments = method.args
        positional = [each.arg for each in [*arguments.posonlyargs, *arguments.args]][1:]
        shape = {
            "positional": positional,
            "required": len(positional) - len(arguments.defaults),
            "keyword": [each.arg for each in arguments.kwonlyargs],
            "any_positional": arguments.vararg is not None,
            "any_keyword": arguments.kwarg is not None,
        }
        symbol = f"{dotted(base)}.{method.name}"
        self.found.append(
            Use(self.file, method.lineno, "override", symbol, ["override", base, method.name], shape=shape)
        )

    def _import(self, alias: ast.alias, module: str, name: str | None) -> None:
        if self.trees.targeted(module) and name != "*":
            expression = ["import", module, name]
            self._add(alias.lineno, "import", expression, ["exists", expression])

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        of = scope.value(node.value)
        if of is not None:
            expression = ["attr", of, node.attr]
            line = node.end_lineno or node.lineno
            self._add(line, "attribute", expression, ["exists", expression], asked=scope.asks(node.attr))

    def _call(self, node: ast.Call, scope: Scope) -> None:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[inner, ast.Constant(value=str(name))]):
                of = scope.value(inner)
                if of is not None:
                    expression = ["attr", of, name]
                    self._add(node.lineno, "attribute", expression, ["exists", expression], asked=scope.asks(name))
                return
            case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[function, *rest]):
                self._arguments(node, function, rest, scope, partial=True)
            case _:
                self._arguments(node, node.func, node.args, scope, partial=False)

    def _arguments(
        self, node: ast.Call, function: ast.expr, arguments: list[ast.expr], scope: Scope, *, partial: bool
    ) -> None:
        callee = scope.value(function)
        if callee is None:
            return
        names: list[str] = []
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                partial = True
                break
            names.append(_called(argument))
        keywords: list[tuple[str, int]] = []
        for keyword in node.keywords:
            if keyword.arg is not None:
                keywords.append((keyword.arg, keyword.lineno))
                continue
            literal = dictionary(keyword.value, scope)
            partial = partial or literal is None or not literal[1]
            keywords += literal[0] if literal else []
        probe = ["call", callee, len(names), [name for name, _ in keywords], partial]
        self._add(node.lineno, "call", callee, probe, tuple(keywords), tuple(names))

    def _add(
        self,
        line: int,
        kind: str,
        expression: Expression,
        probe: list[Any],
        keywords: tuple[tuple[str, int], ...] = (),
        arguments: tuple[str, ...] = (),
        *,
        asked: bool = False,
    ) -> None:
        self.found.append(Use(self.file, line, kind, dotted(expression), probe, keywords, arguments, asked=asked))


def dotted(expression: Expression) -> str:
    """How people would write the expression."""
    match expression:
        case ["import", module, name]:
            return f"{module}.{name}" if name else str(module)
        case ["attr", of, name]:
            return f"{dotted(of)}.{name}"
        case ["result", of]:
            return f"{dotted(of)}()"
        case ["oneof", options]:
            return dotted(options[0])
        case [_, of]:
            return dotted(of)
    return ""


def _called(argument: ast.expr) -> str:
    match argument:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
