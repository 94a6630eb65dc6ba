"""Run a small function of the tree on known arguments, step by step."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.analysis.conditions.terms import EXCEPTIONS, FAILED_IMPORT, UNKNOWN, Known, Raised, Term, truth
from patcher.analysis.outlining.outline import Body, Outline
from patcher.analysis.outlining.written import caught

if TYPE_CHECKING:
    from patcher.analysis.conditions.evaluator import Evaluator

_FUEL = 120
_LINES = 60


class _Lost(Exception):  # noqa: N818
    """The run cannot be followed any further."""


@dataclass
class _Run:
    evaluator: Evaluator
    outline: Outline
    function: str
    local: dict[str, Term]
    fuel: list[int] = field(default_factory=lambda: [_FUEL])


def interpret(
    evaluator: Evaluator, outline: Outline, body: Body, arguments: Sequence[Term], words: dict[str, Term]
) -> Term:
    """What the function returns; unknown where it cannot be followed. Raises `Raised`."""
    if body.last - body.first > _LINES:
        return UNKNOWN
    node = evaluator.tree.node(outline, body)
    if node is None or isinstance(node, ast.AsyncFunctionDef) or node.args.vararg or node.args.kwarg:
        return UNKNOWN
    names = [name for name in body.parameters if not (body.owner and name in ("self", "cls"))]
    if len(arguments) > len(names) or any(word not in names for word in words):
        return UNKNOWN
    local: dict[str, Term] = dict(zip(names, arguments, strict=False)) | words
    run = _Run(evaluator, outline, body.qualname, local)
    for name in names:
        if name not in local:
            default = body.defaults.get(name)
            local[name] = UNKNOWN if default is None else _value(run, default)
    key = (outline.file, body.qualname, "()")
    if key in evaluator.active:
        return UNKNOWN
    evaluator.active.add(key)
    try:
        returned = _block(run, node.body)
    except _Lost:
        return UNKNOWN
    finally:
        evaluator.active.discard(key)
    return Known(None) if returned is None else returned


def _block(run: _Run, body: Sequence[ast.stmt]) -> Term | None:
    """What the statements return; None if they run through."""
    for index, node in enumerate(body):
        run.fuel[0] -= 1
        if run.fuel[0] < 0:
            raise _Lost
        match node:
            case ast.If(test=test):
                answer = truth(run.evaluator.settled(_value(run, test)))
                rest = body[index + 1 :]
                if answer is None:
                    return _both(run, [*node.body, *rest], [*node.orelse, *rest])
                returned = _block(run, node.body if answer else node.orelse)
            case ast.Try():
                returned = _try(run, node)
            case ast.With(body=inner):
                returned = _block(run, inner)
            case _:
                returned = _simple(run, node)
        if returned is not None:
            return returned
    return None


def _both(run: _Run, one: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> Term | None:
    """Where a test cannot be told, both ways must come to the same."""
    found: list[Term | None] = []
    for body in (one, other):
        inner = _Run(run.evaluator, run.outline, run.function, dict(run.local), run.fuel)
        try:
            found.append(_block(inner, body))
        except Raised:
            continue
    if not found:
        raise _Lost
    if len(found) == 2 and found[0] != found[1]:
        answers = {truth(term) if term is not None else False for term in found}
        if len(answers) == 1 and None not in answers:
            return Known(answers.pop())
        raise _Lost
    return Known(None) if found[0] is None else found[0]


def _try(run: _Run, node: ast.Try) -> Term | None:
    try:
        returned = _block(run, node.body)
        if returned is None:
            returned = _block(run, node.orelse)
    except Raised as raised:
        for handler in node.handlers:
            if set(caught(handler.type)) & set(raised.names):
                returned = _block(run, handler.body)
                break
        else:
            raise
    return returned if returned is not None else _block(run, node.finalbody)


def _simple(run: _Run, node: ast.stmt) -> Term | None:
    match node:
        case ast.Return(value=value):
            return Known(None) if value is None else _value(run, value)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            run.local[name] = _value(run, value)
        case ast.Assign(targets=targets):
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        run.local[part.id] = UNKNOWN
        case ast.Import(names=aliases):
            for alias in aliases:
                _needs(run, alias.name)
                name = alias.asname or alias.name.partition(".")[0]
                run.local[name] = run.evaluator.dotted(alias.name if alias.asname else name)
        case ast.ImportFrom(module=module, names=aliases, level=level):
            where = module or ""
            if level:
                parts = run.outline.package.split(".")
                where = ".".join([*parts[: len(parts) - level + 1], *([where] if where else [])])
            for alias in aliases:
                _needs(run, f"{where}.{alias.name}")
                run.local[alias.asname or alias.name] = run.evaluator.dotted(f"{where}.{alias.name}")
        case ast.Raise(exc=exception):
            raise Raised(*_raised(exception))
        case ast.Expr() | ast.Pass() | ast.Assert():
            pass
        case ast.Global() | ast.FunctionDef() | ast.ClassDef():
            pass
        case _:
            raise _Lost
    return None


def _needs(run: _Run, dotted: str) -> None:
    if run.evaluator.tree.split(dotted) is None and run.evaluator.outside.has(dotted, run.evaluator) is False:
        raise Raised(*FAILED_IMPORT)


def _raised(node: ast.expr | None) -> tuple[str, ...]:
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "Exception")
    return EXCEPTIONS.get(name, (name, "Exception", "BaseException"))


def _value(run: _Run, node: ast.expr) -> Term:
    from patcher.analysis.conditions.scoping import Place

    return run.evaluator.term(node, Place(run.outline, run.function, run.local))
