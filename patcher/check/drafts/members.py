"""Repairs of attributes and methods that went: by the name, or the function, that they only passed on to."""

from __future__ import annotations

import ast

import libcst as cst

from patcher.analysis.model import Finding
from patcher.analysis.symbols import Class, Function, Symbols, Variable
from patcher.analysis.symbols.annotations import is_property
from patcher.check.drafts.calls import expression, text_of, written
from patcher.check.drafts.fitting import fitted
from patcher.check.drafts.inlining import Inlined, body_of, inlined
from patcher.check.drafts.model import Ground, Repair
from patcher.i18n import Phrase, phrase
from patcher.rewrite.edits import Edit, Insert, RenameAttribute, Replace
from patcher.rewrite.names import aliases, dotted, local
from patcher.rewrite.outcome import Unparseable
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import IMPORTS, SCOPES


def member_repairs(finding: Finding, ground: Ground) -> list[Repair]:
    """What the member was in the last release that had it, put in its place."""
    text, symbols, before = ground.text(finding.file), ground.symbols(finding.package), ground.before(finding)
    if text is None or symbols is None or before is None:
        return []
    code = parse(text)
    if isinstance(code, Unparseable):
        return []
    owner, _, name = finding.symbol.rpartition(".")
    was = before.resolve(finding.symbol).definition
    found = [node for node in code.everything if isinstance(node, cst.Attribute) and node.attr.value == name]
    nodes = [node for node in found if code.lines(node)[1] == finding.line]
    if len(nodes) != 1:
        return []
    node = nodes[0]
    if (new := _alias(was)) is not None and _offers(symbols, before, owner, new):
        tail = ".".join(part for part in dotted(node)[-2:] if part and part not in ("self", "cls"))
        edit: Edit = RenameAttribute(file=finding.file, old=tail, new=new)
        title = phrase("Use {new} in place of {old}", new=new, old=name)
        return _repair(
            finding, (edit,), title, phrase("{old} only passed on to {new}", old=name, new=new), ground, code
        )
    if (new := _opposite(was)) is not None and _offers(symbols, before, owner, new):
        value = text_of(code, node.value)
        edit = Replace(file=finding.file, pattern=written(code, node), replacement=f"(not {value}.{new})")
        title = phrase("Use {new} in place of {old}", new=f"not {new}", old=name)
        told = phrase("{old} only passed on to {new}", old=name, new=f"not {new}")
        return _repair(finding, (edit,), title, told, ground, code)
    call = code.parents[id(node)]
    if isinstance(was, Function) and isinstance(call, cst.Call) and call.func is node:
        passed = expression(code, call)
        assert isinstance(passed, ast.Call)
        made = inlined(was, passed, text_of(code, node.value), before, symbols, owner)
        if made is not None and not _binds(code, made):
            return _inline(finding, code, call, made, ground)
    return []


def _alias(was: object) -> str | None:
    """The attribute of the same object that a property, or a name in the class's body, stands for."""
    match was:
        case Function(node=node) if is_property(node):
            match body_of(node):
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    return name
        case Function(node=node, qualname=qualname) if node.name != qualname.rpartition(".")[2]:
            return node.name
        case Variable(value=ast.Name(id=name), qualname=qualname) if "." in qualname:
            return name
        case _:
            pass
    return None


def _opposite(was: object) -> str | None:
    match was:
        case Function(node=node) if is_property(node):
            match body_of(node):
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


def _inline(finding: Finding, code: Source, call: cst.Call, made: Inlined, ground: Ground) -> list[Repair]:
    within = finding.function or None
    edits: list[Edit] = []
    if made.module:
        insert = Insert(file=finding.file, where="prologue", code=f"from {made.module} import {made.name}")
        edits.append(insert)
    edits.append(Replace(file=finding.file, within=within, pattern=written(code, call), replacement=made.text))
    title = phrase("Use {new} in place of {old}", new=made.name, old=finding.symbol.rpartition(".")[2])
    told = phrase("{old} did no more than call {new}", old=finding.symbol.rpartition(".")[2], new=made.name)
    has = (f"{made.module}.{made.name}",) if made.module else ()
    return _repair(finding, tuple(edits), title, told, ground, code, has)


def _repair(
    finding: Finding,
    edits: tuple[Edit, ...],
    title: Phrase,
    evidence: Phrase,
    ground: Ground,
    code: Source,
    has: tuple[str, ...] = (),
) -> list[Repair]:
    symbols = ground.symbols(finding.package)
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
