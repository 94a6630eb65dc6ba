"""Rename, remove and add keyword arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.records.model import AddArgument, RemoveArgument, RenameArgument
from patcher.rewriting import commas, names
from patcher.rewriting.code import Code, Scope
from patcher.rewriting.marking import Splice
from patcher.rewriting.sites import Anchor, Sites


def calls(code: Code, scopes: Sequence[Scope], called: str) -> list[ast.Call]:
    """The calls whose full dotted name ends in `called`, in order."""
    table = names.imports(code.parents)
    tail = tuple(called.split("."))
    return [
        node
        for node in code.nodes(scopes)
        if isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Name, ast.Attribute))
        and names.ends_in(names.resolve(node.func, table), tail)
    ]


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def rename_argument(code: Code, scopes: Sequence[Scope], edit: RenameArgument) -> Sites:
    def splices(old: ast.keyword) -> list[Splice]:
        start = code.start(old)
        if edit.value is None:
            return [Splice(start, start + len(edit.old), edit.new)]
        return [Splice(start, code.end(old), f"{edit.new}={edit.value}")]

    found = calls(code, scopes, edit.call)
    anchors = [
        Anchor(old, lambda old=old: splices(old))  # type: ignore[misc]
        for call in found
        if (old := keyword(call, edit.old)) and not keyword(call, edit.new)
    ]
    effects = [new for call in found if (new := keyword(call, edit.new)) and not keyword(call, edit.old)]
    return Sites(tuple(anchors), tuple(effects))


def remove_argument(code: Code, scopes: Sequence[Scope], edit: RemoveArgument) -> Sites:
    def splices(call: ast.Call, old: ast.keyword) -> list[Splice]:
        items = commas.argument_items(code, call)
        start = code.start(old)
        return commas.without(items, frozenset(i for i, span in enumerate(items.spans) if span[0] == start))

    found = calls(code, scopes, edit.call)
    anchors = [
        Anchor(old, lambda call=call, old=old: splices(call, old))  # type: ignore[misc]
        for call in found
        if (old := keyword(call, edit.old))
    ]
    return Sites(tuple(anchors), tuple(call for call in found if not keyword(call, edit.old)))


def add_argument(code: Code, scopes: Sequence[Scope], edit: AddArgument) -> Sites:
    def splices(call: ast.Call) -> list[Splice]:
        items = commas.argument_items(code, call)
        sole = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if isinstance(sole, ast.GeneratorExp) and code.start(sole) < items.start:
            return [Splice(items.start, items.end, f"({code.text[items.start : items.end]}), {edit.new}={edit.value}")]
        return commas.with_appended(items, f"{edit.new}={edit.value}")

    found = calls(code, scopes, edit.call)
    anchors = [
        Anchor(call, lambda call=call: splices(call))  # type: ignore[misc]
        for call in found
        if not keyword(call, edit.new)
    ]
    return Sites(tuple(anchors), tuple(new for call in found if (new := keyword(call, edit.new))))
