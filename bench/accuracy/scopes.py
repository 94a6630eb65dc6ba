"""What names mean in a file of the tree: all that is ever bound to them, whatever the order."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.accuracy.bindings import Bindings

Expression = Any
_DEEP = 12


class Trees:
    """The files of a tree as scopes, by path and by module name."""

    def __init__(self, root: Path, packages: tuple[str, ...]) -> None:
        self.root = root
        self.packages = packages
        self._files: dict[str, Scope | None] = {}

    def targeted(self, module: str) -> bool:
        return module.partition(".")[0] in self.packages

    def file(self, file: str) -> Scope | None:
        if file not in self._files:
            self._files[file] = None
            path = self.root / file
            if path.is_file():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with contextlib.suppress(SyntaxError, ValueError):
                        self._files[file] = Scope(ast.parse(path.read_bytes()), None, self, file)
        return self._files[file]

    def module(self, dotted: str) -> Scope | None:
        path = dotted.replace(".", "/")
        return self.file(f"{path}.py") or self.file(f"{path}/__init__.py")


class Scope(Bindings):
    """A module, class, function or lambda."""

    def __init__(self, node: ast.AST, parent: Scope | None, trees: Trees, file: str) -> None:
        super().__init__(node, file)
        self.parent = parent
        self.trees = trees
        self._children: dict[int, Scope] = {}
        self._own: dict[str, list[tuple[str, Any, Scope]]] | None = None
        self._busy: set[str] = set()
        self._asked: set[str] | None = None

    def child(self, node: ast.AST) -> Scope:
        if id(node) not in self._children:
            self._children[id(node)] = Scope(node, self, self.trees, self.file)
        return self._children[id(node)]

    def asks(self, name: str) -> bool:
        """Whether the function (or module) asks `hasattr` for an attribute of this name, or a signature for it."""
        if self._asked is None:
            self._asked = set()
            for inner in ast.walk(self.node):
                match inner:
                    case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str(asked))]):
                        self._asked.add(asked)
        return name in self._asked

    # meaning

    def value(self, node: ast.expr | None) -> Expression | None:
        """What an expression stands for; None if that does not lead to a package that is asked about."""
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr) if self.owner() is not None:
                return self.owner().member(attr)  # type: ignore[union-attr]
            case ast.Attribute(value=inner, attr=attr):
                of = self.value(inner)
                return ["attr", of, attr] if of is not None else None
            case ast.Call(func=ast.Name(id="super"), args=[]) if self.owner() is not None:
                bases = list(self.owner().target_bases())  # type: ignore[union-attr]
                return ["instance", bases[0]] if len(bases) == 1 else None
            case ast.Call(func=function):
                of = self.value(function)
                return ["result", of] if of is not None else None
            case ast.Await(value=inner):
                return self.value(inner)
            case ast.Subscript(value=inner, slice=index) if not isinstance(index, ast.Slice):
                of = self.value(inner)
                return ["item", of] if of is not None else None
        return None

    def name(self, name: str) -> Expression | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bound and (scope is self or not scope.is_class):
                return scope._meaning(name)
            scope = scope.parent
        return None

    def _meaning(self, name: str) -> Expression | None:
        if name in self._busy or len(self._busy) > _DEEP:
            return None
        self._busy.add(name)
        try:
            options: list[Expression] = []
            for how, what in self.bound[name]:
                option = self._option(how, what)
                if option is None:
                    return None
                if option not in options:
                    options.append(option)
            return options[0] if len(options) == 1 else ["oneof", options]
        finally:
            self._busy.discard(name)

    def _option(self, how: str, what: Any) -> Expression | None:
        match how:
            case "import":
                module, name = what
                if self.trees.targeted(module):
                    return ["import", module, name]
                return self._imported(module, name) if name and module.startswith("verl") else None
            case "value":
                return self.value(what)
            case "each":
                of = self.value(what)
                return ["each", of] if of is not None else None
            case "annotation":
                return self.annotated(what)
        return None

    def _imported(self, module: str, name: str) -> Expression | None:
        other = self.trees.module(module)
        return other._meaning(name) if other is not None and name in other.bound else None

    def annotated(self, node: ast.expr | None) -> Expression | None:
        """An instance of what an annotation names."""
        match node:
            case ast.Constant(value=str(text)):
                try:
                    return self.annotated(ast.parse(text, mode="eval").body)
                except SyntaxError:
                    return None
            case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
                return self.annotated(left)
            case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
                return self.annotated(inner)
            case ast.Name() | ast.Attribute():
                of = self.value(node)
                return ["instance", of] if of is not None else None
        return None

    # classes

    def owner(self) -> Scope | None:
        """The class whose method this is, or is nested in."""
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def target_bases(self) -> Iterator[Expression]:
        """The bases that lead to a package that is asked about, through classes of the tree."""
        for scope in self._lineage():
            for base in scope.node.bases:  # type: ignore[attr-defined]
                found = scope.parent.value(base) if scope.parent else None
                if found is not None:
                    yield found

    def _lineage(self, depth: int = 0) -> Iterator[Scope]:
        yield self
        for base in self.node.bases if depth < _DEEP else ():  # type: ignore[attr-defined]
            found = self.parent.class_named(base) if self.parent else None
            if found is not None and found is not self:
                yield from found._lineage(depth + 1)

    def class_named(self, node: ast.expr) -> Scope | None:
        """A class of the tree that an expression names."""
        if not isinstance(node, ast.Name):
            return None
        scope: Scope | None = self
        while scope is not None:
            for how, what in scope.bound.get(node.id, ())[:1]:
                if how == "class":
                    return scope.child(what)
                if how == "import" and what[1] and what[0].startswith("verl"):
                    other = self.trees.module(what[0])
                    return other.class_named(ast.Name(what[1])) if other is not None and other is not scope else None
            scope = scope.parent
        return None

    def member(self, name: str) -> Expression | None:
        """`self.name` in this class: set by its methods or its bases in the tree, else of the target's base."""
        lineage = list(self._lineage())
        for scope in lineage:
            if name in scope.bound:
                return scope._meaning(name) if scope.bound[name][0][0] == "annotation" else None
            own = scope._assigned()
            if name in own:
                return scope._set(name, own[name])
        bases = list(self.target_bases())
        return ["attr", ["instance", bases[0]], name] if len(bases) == 1 else None

    def _set(self, name: str, values: list[tuple[str, Any, Scope]]) -> Expression | None:
        key = f"self.{name}"
        if key in self._busy:
            return None
        self._busy.add(key)
        try:
            options: list[Expression] = []
            for how, what, scope in values:
                option = scope.annotated(what) if how == "annotation" else scope.value(what)
                if option is None:
                    return None
                if option not in options:
                    options.append(option)
            return None if not options else options[0] if len(options) == 1 else ["oneof", options]
        finally:
            self._busy.discard(key)

    def _assigned(self) -> dict[str, list[tuple[str, Any, Scope]]]:
        if self._own is None:
            found: dict[str, list[tuple[str, Any, Scope]]] = {}
            for method in self.node.body:  # type: ignore[attr-defined]
                if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._in_method(method, self.child(method), found)
            self._own = found
        return self._own

    def _in_method(self, node: ast.AST, scope: Scope, found: dict[str, list[tuple[str, Any, Scope]]]) -> None:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._in_method(inner, scope.child(inner), found)
                continue
            match inner:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation):
                    found.setdefault(name, []).append(("annotation", annotation, scope))
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                            match part:
                                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                                    none = isinstance(value, ast.Constant) and value.value is None
                                    given = value if part is target else ast.Constant(0)
                                    found.setdefault(name, [])
                                    if not none:
                                        found[name].append(("value", given, scope))
            self._in_method(inner, scope, found)
