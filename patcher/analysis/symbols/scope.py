"""The names that a module's or class's body binds, as plain values: bindings, headers, and literal tables."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from patcher.analysis.bindings import Imported, imports
from patcher.analysis.expressions import Expression, dotted_or_called, expression, last_name, maybe
from patcher.analysis.parameters import Signature, signature_in
from patcher.analysis.syntax import decorators, for_type_checkers

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


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


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    value: Expression | None
    annotation: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One way in which a name gets its value; `certain` unless it is inside `if`, `try`, a loop or the like."""

    made_by: Header | Imported | Assigned
    certain: bool


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
    """Collect what `body` binds when it runs; code for type checkers alone is left out.

    In a class, a bare annotation declares a field (`annotations_bind`); in a module it binds nothing.
    """
    scope = Scope()
    _walk(body, scope, True, annotations_bind)
    return scope


def _walk(body: Iterable[ast.stmt], scope: Scope, certain: bool, annotations: bool) -> None:
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if "overload" not in decorators(node):
                    header = class_header(node) if isinstance(node, ast.ClassDef) else function_header(node)
                    _bind(scope, name, header, certain)
            case ast.Import() | ast.ImportFrom():
                for one in imports(node):
                    if one.name == "*":
                        scope.stars.append(one.module)
                    else:
                        _bind(scope, one.local, one, certain)
            case ast.Assign(targets=targets, value=value):
                made = expression(value)
                for target in targets:
                    _assign(scope, target, made, None, certain)
            case ast.AnnAssign(target=target, value=value, annotation=annotation):
                if value is not None or annotations:
                    _assign(scope, target, maybe(value), expression(annotation), certain)
            # `__all__ += [...]` gives the name a value that is computed.
            case ast.AugAssign(target=target):
                _assign(scope, target, None, None, False)
            case ast.Delete(targets=targets):
                for target in targets:
                    # `del name` at the top level takes the name out; `del` under a condition may not have run.
                    if certain and isinstance(target, ast.Name):
                        scope.names.pop(target.id, None)
            case ast.If(test=test, body=inner, orelse=orelse):
                checked = for_type_checkers(test)
                # A lazy package shows its names to type checkers and puts a lazy module in its own place otherwise:
                #     if TYPE_CHECKING:
                #         from .models import Llama
                #     else:
                #         sys.modules[__name__] = _LazyModule(...)
                # What type checkers are shown is what the lazy module serves.
                if checked is True and replaces_module(orelse):
                    _walk(inner, scope, certain, annotations)
                elif checked is True:
                    # Names for type checkers alone are not there at run time, but annotations speak of them.
                    hidden = Scope(scope.for_checkers)
                    _walk(inner, hidden, certain, True)
                else:
                    _walk(inner, scope, certain and checked is False, annotations)
                if checked is not False:
                    _walk(orelse, scope, certain and checked is True, annotations)
            case ast.Try():
                # With a handler the body may break off anywhere: `try: from b import x / except ImportError: x = None`.
                for part in (node.body, node.orelse):
                    _walk(part, scope, certain and not node.handlers, annotations)
                for handler in node.handlers:
                    _walk(handler.body, scope, False, annotations)
                _walk(node.finalbody, scope, certain, annotations)
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                for item in items:
                    if item.optional_vars is not None:
                        _assign(scope, item.optional_vars, None, None, certain)
                _walk(inner, scope, certain, annotations)
            case ast.For(target=target, body=inner, orelse=orelse):
                _assign(scope, target, None, None, False)
                _walk([*inner, *orelse], scope, False, annotations)
            case ast.While(body=inner, orelse=orelse):
                _walk([*inner, *orelse], scope, False, annotations)
            case ast.Match(cases=cases):
                for case in cases:
                    _walk(case.body, scope, False, annotations)
            case ast.stmt() if type(node).__name__ in ("TypeAlias", "TryStar"):
                _newer(node, scope, certain, annotations)
            case _:
                pass


def replaces_module(body: Iterable[ast.stmt]) -> bool:
    """Whether the module puts another in its own place, which serves what type checkers are shown."""
    for node in body:
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__"))]
            ):
                return True
            case _:
                pass
    return False


def _newer(node: ast.stmt, scope: Scope, certain: bool, annotations: bool) -> None:
    """Statements that the oldest supported Python has no class for."""
    # `type X = int` (Python 3.12) binds X; `except*` (3.11) has the bodies of a `try`.
    if isinstance(name := getattr(node, "name", None), ast.Name):
        _bind(scope, name.id, Assigned(maybe(getattr(node, "value", None))), certain)
    for part in ("body", "orelse", "finalbody"):
        _walk(getattr(node, part, []), scope, False, annotations)


def _bind(scope: Scope, name: str, made_by: Header | Imported | Assigned, certain: bool) -> None:
    scope.names.setdefault(name, []).append(Binding(made_by, certain))


def _assign(
    scope: Scope, target: ast.expr, value: Expression | None, annotation: Expression | None, certain: bool
) -> None:
    match target:
        case ast.Name(id=name):
            _bind(scope, name, Assigned(value, annotation), certain)
        # `Class.name = value` after the class: kept under "Class.name".
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            _bind(scope, f"{owner}.{name}", Assigned(value, annotation), certain)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                _assign(scope, part, None, None, certain)
        case ast.Starred(value=inner):
            _assign(scope, inner, None, None, certain)
        case _:
            pass


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
                # `__all__.append("name")`
                part = table_of(value if not _is_string(value) else ast.List(elts=[value], ctx=ast.Load()))
                entries |= part.entries
                complete = complete and part.complete
            case _:
                pass
    return Table(entries, complete) if seen else None


def module_table(tree: ast.Module, name: str) -> Table | None:
    """The same of a whole module."""
    return literal_table(tree.body, name)


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
        # `__all__ = [...] + other.__all__`: the literal part is read, and the table counts as incomplete.
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
        # A table may be filled under `if`, `try`, `with` or in a loop. Both branches count, as either may have run.
        if isinstance(node, ast.If | ast.Try | ast.For | ast.While):
            yield from _flat([*node.body, *node.orelse])
        elif isinstance(node, ast.With):
            yield from _flat(node.body)


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
