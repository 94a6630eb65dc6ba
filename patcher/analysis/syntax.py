"""Python text -> syntax, and quick ways through it: a check looks at a million nodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_NO_PARTS = frozenset({"ctx", "op", "ops", "conversion", "kind", "type_comment", "id", "attr", "arg", "level"})
_ABOVE = re.compile(r"^(?:\.\./)+")
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The names of a kind's fields that hold nodes, once they were asked for."""


def parts(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, without operators and contexts."""
    kind = type(node)
    names = _PARTS.get(kind)
    if names is None:
        names = _PARTS[kind] = tuple(name for name in kind._fields if name not in _NO_PARTS)
    found: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def below(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, level by level, without operators and contexts."""
    found = [node]
    # The list grows while it is walked: breadth first, without a stack.
    for one in found:
        found += parts(one)
    return found


def statements_below(node: ast.AST, *, nested: bool = True) -> Iterator[ast.stmt]:
    """All statements in the order of the source, those of functions and classes inside included if `nested`. It looks
    into no expression, which takes most of the time that it takes to walk through all nodes."""
    waiting: list[ast.AST] = list(reversed(getattr(node, "body", ())))
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.stmt):
            yield one
            if not nested and isinstance(one, FunctionNode | ast.ClassDef):
                continue
        inner: list[ast.AST] = []
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner += getattr(one, part, ())
        waiting += reversed(inner)


def module_name(file: str) -> str:
    """`verl/a/__init__.py` -> `verl.a`, and `../agents/x.py` of the project around the tree -> `agents.x`."""
    return _ABOVE.sub("", file, count=1).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def text_in(node: ast.AST | None) -> str | None:
    """The text that is written out as a literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def strings(node: ast.AST | None) -> tuple[str, ...]:
    """The strings in an expression."""
    if node is None:
        return ()
    return tuple(
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def written(node: ast.expr) -> str:
    """A dotted name as written; `.name` for an attribute of something computed; "" for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            inner = written(value)
            return f".{name}" if not inner or inner.startswith(".") else f"{inner}.{name}"
        case _:
            return ""


def caught(node: ast.expr | None) -> tuple[str, ...]:
    """The exceptions that a handler is for, as written; "BaseException" for a bare `except`."""
    if node is None:
        return ("BaseException",)
    return tuple(ast.unparse(kind) for kind in (node.elts if isinstance(node, ast.Tuple) else [node]))


def last_name(node: ast.AST | None) -> str:
    """The last word of a dotted name: `c` for `a.b.c` and for `c`; "" for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether what follows the block never runs after it: each way through it ends in `return`, `raise` or the like."""
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


def for_type_checkers(test: ast.expr) -> bool | None:
    """True for `TYPE_CHECKING`, False for its negation, None for any other condition."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return None if (inner := for_type_checkers(operand)) is None else not inner
        case ast.BoolOp(op=ast.And(), values=values) if any(for_type_checkers(value) is True for value in values):
            return True
        case _:
            return None


def decorators(node: FunctionNode | ast.ClassDef) -> frozenset[str]:
    """The last words of the decorators, called or not: `property`, `setter` of `@x.setter`, `cache` of `@cache()`."""
    return frozenset(last_name(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list)


def with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters in order, each with its default; without `*args` and `**kwargs`."""
    plain = [*arguments.posonlyargs, *arguments.args]
    required: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    yield from zip(plain, [*required, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def own_nodes(function: ast.AST) -> list[ast.AST]:
    """The nodes below, as they stand in the text, without functions and classes inside and what these hold."""
    found: list[ast.AST] = []
    waiting = parts(function)[::-1]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, FunctionNode | ast.ClassDef | ast.Lambda):
            found.append(one)
            waiting += parts(one)[::-1]
    return found


def bound_names(tree: ast.Module) -> Iterator[str]:
    """The names that a module's body binds, once for each time."""
    for node in statements_below(tree, nested=False):
        match node:
            case (
                ast.FunctionDef(name=name, decorator_list=decorators)
                | ast.AsyncFunctionDef(name=name, decorator_list=decorators)
            ):
                if not any(isinstance(each, ast.Name) and each.id == "overload" for each in decorators):
                    yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
