"""The names that a module's or class's body binds, as plain values; and literal tables."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from patcher.analysis import expressions as ex
from patcher.analysis.bindings import Binding, assigned, class_header, function_header, imports
from patcher.analysis.expressions import Expression, expression, maybe
from patcher.analysis.statement_walk import StatementContext, statements_of
from patcher.analysis.syntax import decorators, statements_below


@dataclass(slots=True)
class Scope:
    """The bindings of a body, in order; dotted keys are attributes set from outside (`Class.name = …`)."""

    names: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules of `from module import *`, as written."""
    for_checkers: dict[str, list[Binding]] = field(default_factory=dict)
    """What is bound for type checkers alone: annotations speak of it."""

    def bindings(self, name: str) -> list[Binding]:
        """Those that may hold when the body has run, the last one first."""
        found = []
        # The last binding wins, unless it stands under a condition: then those before it may hold as well.
        for binding in reversed(self.names.get(name, [])):
            found.append(binding)
            if binding.certain:
                break
        return found


def read_scope(body: Iterable[ast.stmt], *, annotations_bind: bool = False) -> Scope:
    """Collect what `body` binds when it runs, and apart from it what is bound for type checkers alone.

    In a class, a bare annotation declares a field (`annotations_bind`); in a module it binds nothing.
    """
    scope = Scope()
    for node, at in statements_of(body):
        names = scope.for_checkers if at.for_checkers else scope.names
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if "overload" not in decorators(node):
                    header = class_header(node) if isinstance(node, ast.ClassDef) else function_header(node)
                    _bind(names, name, Binding(header, at.conditions, at.certain))
            case ast.Import() | ast.ImportFrom():
                for one in imports(node):
                    if one.name != "*":
                        _bind(names, one.local, Binding(one, at.conditions, at.certain))
                    elif not at.for_checkers:
                        scope.stars.append(one.module)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _assign(names, target, value, at)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                if value is not None or annotations_bind or at.for_checkers:
                    _assign(names, target, value, at, expression(annotation))
            # `__all__ += [...]` gives the name a value that is computed.
            case ast.AugAssign(target=target) | ast.For(target=target):
                _assign(names, target, None, at._replace(certain=False))
            case ast.With(items=items):
                for item in items:
                    _assign(names, item.optional_vars, None, at)
            case ast.Delete(targets=targets):
                for target in targets:
                    # `del name` at the top level takes the name out; `del` under a condition may not have run.
                    if at.certain and isinstance(target, ast.Name):
                        names.pop(target.id, None)
            # `type X = int` came with Python 3.12.
            case ast.stmt() if type(node).__name__ == "TypeAlias":
                _assign(names, getattr(node, "name", None), getattr(node, "value", None), at)
    return scope


def _assign(
    names: dict[str, list[Binding]],
    target: ast.expr | None,
    value: ast.expr | None,
    at: StatementContext,
    annotation: Expression | None = None,
) -> None:
    for one, given in assigned(target, value):
        match one:
            case ast.Name(id=name):
                _bind(names, name, Binding(maybe(given), at.conditions, at.certain, annotation))
            # `Class.name = value` after the class: kept under "Class.name".
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                _bind(names, f"{owner}.{name}", Binding(maybe(given), at.conditions, at.certain, annotation))


def _bind(names: dict[str, list[Binding]], name: str, binding: Binding) -> None:
    names.setdefault(name, []).append(binding)


@dataclass(frozen=True, slots=True)
class Table:
    """The strings of a literal container; for a mapping, what each of them maps to (None if that is no string)."""

    entries: dict[str, str | None]
    complete: bool
    """False if parts of it are computed, so that more may be in it."""


def literal_table(owner: ast.Module | ast.ClassDef, name: str) -> Table | None:
    """Put together what the statements of a module or class say about the container `name`; None if they never assign
    it."""
    entries: dict[str, str | None] = {}
    complete, seen, followed = True, False, 0
    for node, at in statements_of(owner.body):
        given = _given_to(name, node)
        if given is None:
            continue
        followed += isinstance(node, _FILLS)
        # A table may be filled in a branch or a loop. Each branch counts, as it may have run; a handler seldom does.
        if not at.raised:
            anew = isinstance(node, ast.Assign | ast.AnnAssign)
            part = table_of(expression(given))
            entries = part.entries if anew else entries | part.entries
            complete = part.complete and (anew or complete)
            seen = seen or not isinstance(node, ast.Expr)
    # `def extend_all(module): __all__.append(...)`: what functions put into it is not known.
    if seen and complete and isinstance(owner, ast.Module):
        filled = (node for node in statements_below(owner) if isinstance(node, _FILLS))
        complete = sum(_given_to(name, node) is not None for node in filled) <= followed
    return Table(entries, complete) if seen else None


_FILLS = (ast.Expr, ast.AugAssign)
"""How a function changes a container of its module."""


def _given_to(name: str, node: ast.stmt) -> ast.expr | None:
    """What a statement assigns to a container of that name or adds to it; None for any other statement."""
    match node:
        case ast.Assign(targets=targets, value=given):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as given) | ast.AugAssign(target=target, value=given):
            targets = [target]
        # `__all__.append("name")`
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="append" | "add"), args=[given])):
            targets, given = [target], ast.List([given])
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="extend" | "update"), args=[given])):
            targets = [target]
        case _:
            return None
    return given if any(isinstance(one, ast.Name) and one.id == name for one in targets) else None


def table_of(value: Expression) -> Table:
    """Read a literal list, tuple, set, dict, or a sum or union of such."""
    match value:
        case ex.Elements(values=parts):
            texts = [part.value for part in parts if isinstance(part, ex.Constant) and isinstance(part.value, str)]
            return Table(dict.fromkeys(texts), len(texts) == len(parts))
        case ex.Table(keys=keys, values=values):
            entries = {
                key.value: _target(item)
                for key, item in zip(keys, values, strict=True)
                if isinstance(key, ex.Constant) and isinstance(key.value, str)
            }
            return Table(entries, len(entries) == len(keys))
        # `__all__ = [...] + other.__all__`: the literal part is read, and the table counts as incomplete.
        case ex.BinOp(left=left, operator="+" | "|", right=right):
            first, second = table_of(left), table_of(right)
            return Table(first.entries | second.entries, first.complete and second.complete)
        case ex.Call(of=ex.Name(id="list" | "tuple" | "set" | "frozenset" | "sorted" | "dict"), positional=(inner,)):
            return table_of(inner)
        case ex.Call(
            of=ex.Name(id="list" | "tuple" | "set" | "frozenset" | "dict"), positional=(), keywords=(), spread=()
        ):
            return Table({}, True)
        case _:
            return Table({}, False)


def _target(item: Expression) -> str | None:
    """The string that a table's row maps to; a pair `("module", "name")` is joined by a colon."""
    match item:
        case ex.Constant(value=str() as text):
            return text
        case ex.Elements(kind="tuple", values=(ex.Constant(value=str() as module), ex.Constant(value=str() as name))):
            return f"{module}:{name}"
        case _:
            return None
