"""What statements bind, in files of a tree and of packages alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.expressions import Expression, dotted_or_called, expression, last_name, maybe
from patcher.analysis.parameters import Signature, signature_in
from patcher.analysis.syntax import FunctionNode
from patcher.analysis.uses import Condition


@dataclass(slots=True, eq=False)
class Imported:
    """`import module` (`name` is None) or `from module import name`, "*" for all names; `local` is what it binds."""

    local: str
    module: str
    name: str | None
    line: int
    whole: bool = True
    """False for `import a.b`, which binds `a` alone."""

    @property
    def dotted(self) -> str:
        """What the local name stands for."""
        return self.needed if self.whole else self.local

    @property
    def needed(self) -> str:
        """What must be there for the import to succeed: `a.b` for `import a.b`, `from a.b import *`."""
        separator = "" if self.module.endswith(".") else "."
        return self.module if self.name in (None, "*") else f"{self.module}{separator}{self.name}"


def imports(node: ast.Import | ast.ImportFrom, package: str | None = None) -> Iterator[Imported]:
    """What an import statement binds. `package` is where relative imports start; without it their dots stay."""
    if isinstance(node, ast.ImportFrom):
        written = "." * node.level + (node.module or "")
        module = written if package is None else absolute_module(package, written)
        for alias in node.names:
            yield Imported(alias.asname or alias.name, module, alias.name, alias.lineno)
    else:
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            yield Imported(local, alias.name, None, alias.lineno, whole=alias.asname is not None)


def absolute_module(package: str, written: str) -> str:
    """The module that an import names, dots in front included, by its full name.

    In `verl.trainer.main`, whose package is `verl.trainer`, `from ..utils import x` is from `verl.utils`.
    """
    name = written.lstrip(".")
    level = len(written) - len(name)
    if not level:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])


@dataclass(slots=True, eq=False)
class FunctionHeader:
    """What stands above a function's body. `first` is the line of its first decorator, `last` that of its end."""

    name: str
    first: int
    last: int
    signature: Signature
    """`self` included."""
    annotations: dict[str, Expression]
    """Of the parameters that have one."""
    decorators: tuple[Expression, ...]
    returns: Expression | None
    is_async: bool

    @property
    def marks(self) -> frozenset[str]:
        """The last words of the decorators, called or not: `property`, `setter` of `@x.setter`."""
        return frozenset(last_name(dotted_or_called(mark)) for mark in self.decorators)


@dataclass(slots=True, eq=False)
class ClassHeader:
    """What stands above a class's body. What is in the body is read once it is asked for."""

    name: str
    first: int
    last: int
    bases: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...]
    decorators: tuple[Expression, ...]


Header: TypeAlias = FunctionHeader | ClassHeader


def first_line(node: ast.ClassDef | FunctionNode) -> int:
    """The line on which a definition begins, its decorators included."""
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def class_header(node: ast.ClassDef) -> ClassHeader:
    return ClassHeader(
        node.name,
        first_line(node),
        node.end_lineno or node.lineno,
        tuple(expression(base) for base in node.bases),
        tuple((word.arg or "", expression(word.value)) for word in node.keywords),
        tuple(expression(mark) for mark in node.decorator_list),
    )


def function_header(node: FunctionNode) -> FunctionHeader:
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return FunctionHeader(
        node.name,
        first_line(node),
        node.end_lineno or node.lineno,
        signature_in(node.args),
        {one.arg: expression(one.annotation) for one in every if one.annotation is not None},
        tuple(expression(mark) for mark in node.decorator_list),
        maybe(node.returns),
        isinstance(node, ast.AsyncFunctionDef),
    )


@dataclass(slots=True, eq=False)
class Binding:
    """One way in which a name gets its value. Not frozen: a tree has 40,000 of them."""

    value: Header | Imported | Expression | None
    """None: something that is not followed, such as a loop's variable."""
    conditions: tuple[Condition, ...]
    certain: bool
    """It is not inside `if`, `try`, a loop or the like."""
    annotation: Expression | None = None


def assigned(target: ast.expr | None, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The single targets of an assignment, each with its value: `a, b = x, y` gives each its own, `a, b = f()` none."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            values: Sequence[ast.expr | None] = [None] * len(parts)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
                values = value.elts
            for part, one in zip(parts, values, strict=True):
                yield from assigned(part, one)
        case ast.Starred(value=inner):
            yield from assigned(inner, None)
        case ast.expr():
            yield target, value
