"""Containers of strings that a module spells out: `__all__`, tables of lazily served names."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """The strings of a literal container; for a mapping, what each of them maps to (None if that is no string)."""

    entries: dict[str, str | None]
    complete: bool
    """False if parts of it are computed, so that more may be in it."""


def literal_table(body: Iterable[ast.stmt], name: str) -> Table | None:
    """Put together what a module's statements say about the container `name`; None if they never assign it."""
    entries: dict[str, str | None] = {}
    complete, seen = True, False
    for node in _flat(body):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_is(target, name) for target in targets):
                part = table_of(value)
                entries, complete, seen = dict(part.entries), part.complete, True
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _is(target, name):
                part = table_of(value)
                entries, complete, seen = dict(part.entries), part.complete, True
            case ast.AugAssign(target=target, value=value) if _is(target, name):
                part = table_of(value)
                entries |= part.entries
                complete, seen = complete and part.complete, True
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=owner, attr="extend" | "update" | "append" | "add"), args=[value]
                )
            ) if _is(owner, name):
                part = table_of(value if not _is_string(value) else ast.List(elts=[value], ctx=ast.Load()))
                entries |= part.entries
                complete = complete and part.complete
            case _:
                pass
    return Table(entries, complete) if seen else None


def table_of(value: ast.expr) -> Table:
    """Read a literal list, tuple, set, dict, or a sum or union of such."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            strings = {part.value: None for part in parts if isinstance(part, ast.Constant) and _is_string(part)}
            return Table({str(key): None for key in strings}, len(strings) == len(parts))
        case ast.Dict(keys=keys, values=values):
            entries: dict[str, str | None] = {}
            for key, item in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    entries[key.value] = _target(item)
            return Table(entries, len(entries) == len(keys))
        case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
            first, second = table_of(left), table_of(right)
            return Table(first.entries | second.entries, first.complete and second.complete)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "frozenset" | "sorted" | "dict"), args=[inner]):
            return table_of(inner)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "frozenset" | "dict"), args=[], keywords=[]):
            return Table({}, True)
        case _:
            return Table({}, False)


def _target(item: ast.expr) -> str | None:
    """The string that a table's row maps to; a pair `("module", "name")` is joined by a colon."""
    match item:
        case ast.Constant(value=str() as text):
            return text
        case ast.Tuple(elts=[ast.Constant(value=str() as module), ast.Constant(value=str() as name)]):
            return f"{module}:{name}"
        case _:
            return None


def _flat(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _flat([*node.body, *node.orelse])


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
