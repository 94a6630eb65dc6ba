"""Repairs of attributes and methods that are gone: by the name, or the function, that they only passed on to."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from patcher.analysis.expressions import Name
from patcher.analysis.findings import Finding
from patcher.analysis.symbols import Class, Function, Symbols, Variable, full_name
from patcher.analysis.symbols.definition import is_property
from patcher.analysis.syntax import FunctionNode
from patcher.check.drafts.inputs import DraftInputs, Repair
from patcher.check.drafts.sites import expression, fitted, text_of, written
from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import Edit, Insert, RenameAttribute, Replace
from patcher.rewrite.names import aliases, dotted, local
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import IMPORTS, SCOPES


def member_repairs(finding: Finding, inputs: DraftInputs) -> list[Repair]:
    """What the member was in the last release that had it, put in its place."""
    code, symbols, before = inputs.code(finding.file), inputs.symbols(finding.package), inputs.before(finding)
    if code is None or symbols is None or before is None:
        return []
    owner, _, name = finding.symbol.rpartition(".")
    was = before.resolve(finding.symbol).definition
    found = [node for node in code.everything if isinstance(node, cst.Attribute) and node.attr.value == name]
    nodes = [node for node in found if code.lines(node)[1] == finding.line]
    # Two attributes of that name end on the line: which one is meant cannot be known.
    if len(nodes) != 1:
        return []
    node = nodes[0]
    # `@property def old(self): return self.new`
    if (new := _alias(was, before)) is not None and _offers(symbols, before, owner, new):
        tail = ".".join(part for part in dotted(node)[-2:] if part and part not in ("self", "cls"))
        edit: Edit = RenameAttribute(file=finding.file, old=tail, new=new)
        title = phrase("Use {new} in place of {old}", new=new, old=name)
        return _repair(
            finding, (edit,), title, phrase("{old} only passed on to {new}", old=name, new=new), inputs, code
        )
    # `@property def disabled(self): return not self.enabled`
    if (new := _opposite(was, before)) is not None and _offers(symbols, before, owner, new):
        value = text_of(code, node.value)
        edit = Replace(file=finding.file, pattern=written(code, node), replacement=f"(not {value}.{new})")
        title = phrase("Use {new} in place of {old}", new=f"not {new}", old=name)
        evidence = phrase("{old} only passed on to {new}", old=name, new=f"not {new}")
        return _repair(finding, (edit,), title, evidence, inputs, code)
    call = code.parents[id(node)]
    # `def old(self, x): return helper(self, x)`
    if isinstance(was, Function) and isinstance(call, cst.Call) and call.func is node:
        passed = expression(code, call)
        assert isinstance(passed, ast.Call)
        made = inlined(was, passed, text_of(code, node.value), before, symbols, owner)
        if made is not None and not _binds(code, made):
            return _inline(finding, code, call, made, inputs)
    return []


def _alias(was: object, before: Symbols) -> str | None:
    """The attribute of the same object that a property, or a name in the class's body, stands for."""
    match was:
        case Function(header=header) if is_property(header):
            match body_of(before.syntax(was)):
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    return name
        # `old_name = new_name` in the class body.
        case Function(header=header, qualname=qualname) if header.name != qualname.rpartition(".")[2]:
            return header.name
        case Variable(value=Name(id=name), qualname=qualname) if "." in qualname:
            return name
    return None


def _opposite(was: object, before: Symbols) -> str | None:
    match was:
        case Function(header=header) if is_property(header):
            match body_of(before.syntax(was)):
                case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    return name
    return None


def _offers(symbols: Symbols, before: Symbols, owner: str, name: str) -> bool:
    """Whether the class has the other name, then and now."""
    return (
        isinstance(symbols.resolve(owner).definition, Class)
        and symbols.has(f"{owner}.{name}") is True
        and before.has(f"{owner}.{name}") is True
    )


def _inline(finding: Finding, code: Source, call: cst.Call, made: Inlined, inputs: DraftInputs) -> list[Repair]:
    within = finding.function or None
    edits: list[Edit] = []
    if made.module:
        insert = Insert(file=finding.file, where="prologue", code=f"from {made.module} import {made.name}")
        edits.append(insert)
    edits.append(Replace(file=finding.file, within=within, pattern=written(code, call), replacement=made.text))
    title = phrase("Use {new} in place of {old}", new=made.name, old=finding.symbol.rpartition(".")[2])
    evidence = phrase("{old} did no more than call {new}", old=finding.symbol.rpartition(".")[2], new=made.name)
    has = (f"{made.module}.{made.name}",) if made.module else ()
    return _repair(finding, tuple(edits), title, evidence, inputs, code, has)


def _repair(
    finding: Finding,
    edits: tuple[Edit, ...],
    title: Phrase,
    evidence: Phrase,
    inputs: DraftInputs,
    code: Source,
    has: tuple[str, ...] = (),
) -> list[Repair]:
    symbols = inputs.symbols(finding.package)
    exact = [fitted(edit, code.text, frozenset({finding.line}), finding.function) for edit in edits]
    if symbols is None or not all(exact):
        return []
    lacks = (finding.symbol,) if symbols.has(finding.symbol) is False else ()
    made = tuple(edit for edit in exact if edit is not None)
    return [Repair(finding, made, finding.symbol, "gone", title, evidence, has, lacks)]


def _binds(code: Source, made: Inlined) -> bool:
    """Whether the file has the new function's name for something else."""
    return bool(made.module) and any(
        (isinstance(node, cst.Name) and node.value == made.name)
        or (isinstance(node, IMPORTS) and made.name in map(local, aliases(node)))
        or (isinstance(node, SCOPES) and node.name.value == made.name)
        for node in code.everything
    )


@dataclass(frozen=True, slots=True)
class Inlined:
    """The call in other words; `module` is where its function is to be imported from, "" for a method."""

    text: str
    name: str
    module: str = ""


def body_of(node: FunctionNode) -> ast.expr | None:
    """The one expression that a function returns, warnings and error handlers that raise again aside."""
    statements = [one for one in node.body if not _has_no_effect(one)]
    # `try: return self._impl(x) / except Error: log; raise` does no more than its body.
    while len(statements) == 1 and isinstance(tried := statements[0], ast.Try):
        if tried.orelse or tried.finalbody or not all(_raises(handler) for handler in tried.handlers):
            return None
        statements = [one for one in tried.body if not _has_no_effect(one)]
    match statements:
        case [ast.Return(value=ast.Await(value=value))] if isinstance(node, ast.AsyncFunctionDef):
            return value
        case [ast.Return(value=ast.expr() as value)]:
            return value if not isinstance(node, ast.AsyncFunctionDef) else None
        case _:
            return None


def inlined(
    was: Function, call: ast.Call, receiver: str, before: Symbols, symbols: Symbols, owner: str
) -> Inlined | None:
    """What stands for `receiver.method(…)`; None unless the method passed on to what is still there unchanged."""
    node = before.syntax(was)
    body = body_of(node)
    if not isinstance(body, ast.Call):
        return None
    values = _bound(node.args, call, receiver)
    # An argument that is used twice would be evaluated twice; one that is not used would be lost.
    if values is None or not _each_once(body, values):
        return None
    match body.func:
        case ast.Name(id=name):
            found = before.expression(was.module, Name(name)).definition
            # The function may be imported from where it stood, if it takes the same as before.
            if not isinstance(found, Function) or found.owner is not None or found.header.name != name:
                return None
            path = full_name(found)
            if not _unchanged(found, path, before, symbols):
                return None
            return Inlined(_written(body, values), name, path.rpartition(".")[0])
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            then = before.resolve(f"{owner}.{name}").definition
            if not isinstance(then, Function) or not _unchanged(then, f"{owner}.{name}", before, symbols):
                return None
            return Inlined(_written(body, values), name)
        case _:
            return None


def _has_no_effect(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in ("warn", "warning", "warning_once", "warn_once")
        case _:
            return False


def _raises(handler: ast.ExceptHandler) -> bool:
    match handler.body[-1]:
        case ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.Name(id=name)):
            return name == handler.name
        case _:
            return False


def _unchanged(then: Function, path: str, before: Symbols, symbols: Symbols) -> bool:
    now = symbols.resolve(path).definition
    return isinstance(now, Function) and symbols.signature(now) == before.signature(then)


def _bound(args: ast.arguments, call: ast.Call, receiver: str) -> dict[str, ast.expr] | None:
    """The call's arguments by the method's parameters."""
    plain = [argument.arg for argument in (*args.posonlyargs, *args.args)]
    if not plain:
        return None
    values: dict[str, ast.expr] = {plain[0]: ast.parse(receiver, mode="eval").body}
    rest = plain[1:]
    positional = list(call.args)
    while rest and positional and not isinstance(positional[0], ast.Starred):
        values[rest.pop(0)] = positional.pop(0)
    named = {word.arg: word.value for word in call.keywords if word.arg is not None}
    spread = [word.value for word in call.keywords if word.arg is None]
    for name in (*rest, *(argument.arg for argument in args.kwonlyargs)):
        if name not in named or (positional and name in rest):
            return None
        values[name] = named.pop(name)
    if args.vararg is not None:
        match positional:
            case [ast.Starred(value=ast.Name() as value)]:
                values[args.vararg.arg] = value
            case _:
                # `*args` beside plain arguments: how they spread over the parameters is not known.
                if any(isinstance(one, ast.Starred) for one in positional):
                    return None
                values[args.vararg.arg] = ast.Tuple(elts=positional, ctx=ast.Load())
    elif positional:
        return None
    if args.kwarg is not None:
        if spread and (named or len(spread) > 1):
            return None
        keys: list[ast.expr | None] = [ast.Constant(value=name) for name in named]
        values[args.kwarg.arg] = spread[0] if spread else ast.Dict(keys=keys, values=list(named.values()))
    elif named or spread:
        return None
    return values


def _each_once(body: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Whether every argument is used, in one place; a plain name may be used more often."""
    used = [part.id for part in ast.walk(body) if isinstance(part, ast.Name) and part.id in values]
    return all(
        used.count(name) == 1 or (used.count(name) > 1 and isinstance(value, ast.Name)) or name == "self"
        for name, value in values.items()
    )


class _Filled(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.values[node.id]) if node.id in self.values else node


def _written(body: ast.expr, values: Mapping[str, ast.expr]) -> str:
    return ast.unparse(ast.fix_missing_locations(_Filled(values).visit(copy.deepcopy(body))))
