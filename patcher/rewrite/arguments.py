"""Rename, remove and add keyword arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from patcher.rewrite import commas, names
from patcher.rewrite.marking import Splice
from patcher.rewrite.matching import match
from patcher.rewrite.sites import Anchor, Sites

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope
    from patcher.rewrite.edits import AddArgument, RemoveArgument, RenameArgument


def rename_argument(code: Code, scopes: Sequence[Scope], edit: RenameArgument) -> Sites:
    found = _calls(code, scopes, edit.call)
    effects = [
        new
        for call in found
        if (new := _keyword(call, edit.new)) and not _keyword(call, edit.old) and not _half_done(new, edit)
    ]

    def anchor(old: ast.keyword) -> Anchor:
        start = code.start(old)
        if edit.value is None:
            splice = Splice(start, start + len(edit.old), edit.new)
        else:
            splice = Splice(start, code.end(old), f"{edit.new}={edit.value}")
        return Anchor(old, lambda: [splice], lambda node: any(node is effect for effect in effects))

    anchors = [anchor(old) for call in found if (old := _keyword(call, edit.old)) and not _keyword(call, edit.new)]
    return Sites(tuple(anchors), tuple(effects))


def _half_done(new: ast.keyword, edit: RenameArgument) -> bool:
    """Whether the name was changed, and the value that should have changed with it is still the old name's."""
    match new.value:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return edit.value is not None and name == edit.old
        case _:
            return False


def remove_argument(code: Code, scopes: Sequence[Scope], edit: RemoveArgument) -> Sites:
    def anchor(call: ast.Call, old: ast.keyword) -> Anchor:
        return Anchor(old, lambda: taken_out(code, call, old), _alike(call, edit.old))

    found = _calls(code, scopes, edit.call)
    anchors = [anchor(call, old) for call in found if (old := _keyword(call, edit.old))]
    return Sites(tuple(anchors), tuple(call for call in found if not _keyword(call, edit.old)))


def add_argument(code: Code, scopes: Sequence[Scope], edit: AddArgument) -> Sites:
    new = f"{edit.new}={edit.value}"

    def splices(call: ast.Call) -> list[Splice]:
        items = commas.argument_items(code, call)
        sole = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if isinstance(sole, ast.GeneratorExp) and code.start(sole) < items.start:
            return [Splice(items.start, items.end, f"({code.text[items.start : items.end]}), {new}")]
        return commas.with_appended(items, new)

    def anchor(call: ast.Call) -> Anchor:
        alike = _alike(call, edit.new)
        return Anchor(call, lambda: splices(call), lambda node: alike(code.parents[node]) if node in effects else False)

    found = _calls(code, scopes, edit.call)
    effects = [keyword for call in found if (keyword := _keyword(call, edit.new))]
    return Sites(tuple(anchor(call) for call in found if not _keyword(call, edit.new)), tuple(effects))


def taken_out(code: Code, call: ast.Call, argument: ast.keyword) -> list[Splice]:
    """Take one keyword argument out of a call."""
    items = commas.argument_items(code, call)
    start = code.start(argument)
    return commas.without(items, frozenset(index for index, span in enumerate(items.spans) if span[0] == start))


def _calls(code: Code, scopes: Sequence[Scope], called: str) -> list[ast.Call]:
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


def _keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def _alike(call: ast.Call, but: str) -> Callable[[ast.AST], bool]:
    """Tells a call that is the same but for one keyword argument, which just one of the two has."""

    def bare(one: ast.Call) -> ast.Call:
        return ast.Call(one.func, one.args, [keyword for keyword in one.keywords if keyword.arg != but])

    def alike(other: ast.AST) -> bool:
        return (
            isinstance(other, ast.Call)
            and len(other.keywords) != len(call.keywords)
            and match(bare(call), bare(other), {}) is not None
        )

    return alike
