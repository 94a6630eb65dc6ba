"""A callable of a release: its parameters with their defaults and annotations, and its code."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.analysis.symbols import Class, Function, Symbols
from patcher.analysis.symbols.classes import linearise, methods


@dataclass(frozen=True, slots=True)
class Formal:
    """One parameter or constructor field."""

    name: str
    position: int | None
    """Among those that can be passed by position, `self` left out; None for keyword-only ones."""
    default: ast.expr | None = None
    annotation: ast.expr | None = None

    @property
    def boolean(self) -> bool:
        """Whether it is evidently a flag."""
        told = self.annotation is not None and _bare(self.annotation) == "bool"
        return told or (isinstance(self.default, ast.Constant) and isinstance(self.default.value, bool))

    @property
    def kind(self) -> str:
        """The annotation without `None`, as text; "" if there is none."""
        return _bare(self.annotation) if self.annotation is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    formals: Mapping[str, Formal]
    node: ast.FunctionDef | ast.AsyncFunctionDef | None
    """The function, or the constructor if it is written out."""
    owner: Class | None = None
    module: str = ""

    @property
    def positional(self) -> tuple[str, ...]:
        return tuple(formal.name for formal in self.formals.values() if formal.position is not None)


def callee_of(symbols: Symbols, dotted: str) -> Callee | None:
    """What a call of the dotted name runs; None if that is not written in the package."""
    match symbols.resolve(dotted).definition:
        case Function(node=node, owner=owner, module=module):
            static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
            return Callee(_formals(node.args, drop=owner is not None and not static), node, owner, module)
        case Class() as owner:
            return _constructor(symbols, owner)
        case _:
            return None


def _constructor(symbols: Symbols, owner: Class) -> Callee | None:
    order = [base for base in linearise(symbols, owner) if isinstance(base, Class)]
    for base in order:
        own = {method.name: method for method in methods(symbols, base)}
        if "__init__" in own:
            return Callee(_formals(own["__init__"].args, drop=True), own["__init__"], owner, base.module)
    fields = [node for base in reversed(order) for node in base.node.body if isinstance(node, ast.AnnAssign)]
    found = {
        node.target.id: Formal(node.target.id, None, node.value, node.annotation)
        for node in fields
        if isinstance(node.target, ast.Name)
    }
    return Callee(found, None, owner, owner.module) if found else None


def _formals(args: ast.arguments, *, drop: bool) -> dict[str, Formal]:
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    pairs = list(zip(plain, [*defaults, *args.defaults], strict=True))[1 if drop else 0 :]
    found = {
        argument.arg: Formal(argument.arg, index, default, argument.annotation)
        for index, (argument, default) in enumerate(pairs)
    }
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found[argument.arg] = Formal(argument.arg, None, default, argument.annotation)
    return found


def _bare(annotation: ast.expr) -> str:
    text = ast.unparse(annotation).strip("'\"")
    if text.startswith(("Optional[", "typing.Optional[")):
        text = text.partition("[")[2].removesuffix("]")
    return " | ".join(part for part in text.split(" | ") if part != "None")


def attribute_set_elsewhere(symbols: Symbols, owner: Class, name: str) -> str | None:
    """The method, other than the constructor, that gives the class's attribute `name` its value."""
    for base in linearise(symbols, owner):
        if not isinstance(base, Class):
            continue
        for method in methods(symbols, base):
            if method.name == "__init__":
                continue
            for node in ast.walk(method):
                targets = node.targets if isinstance(node, ast.Assign) else []
                if any(
                    isinstance(target, ast.Attribute)
                    and target.attr == name
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                    for target in targets
                ):
                    return method.name
    return None
