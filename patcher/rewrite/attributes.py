"""Rename the last part of dotted expressions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patcher.rewrite import names
from patcher.rewrite.marking import Splice
from patcher.rewrite.sites import Anchor, Sites

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope
    from patcher.rewrite.edits import RenameAttribute


def rename_attribute(code: Code, scopes: Sequence[Scope], edit: RenameAttribute) -> Sites:
    table = names.imports(code.parents)
    old = tuple(edit.old.split("."))
    new = (*old[:-1], edit.new)
    found = [node for node in code.nodes(scopes) if isinstance(node, ast.Attribute)]

    def having(tail: names.Parts) -> list[ast.Attribute]:
        return [node for node in found if node.attr == tail[-1] and names.ends_in(names.resolve(node, table), tail)]

    effects = having(new)

    def anchor(node: ast.Attribute) -> Anchor:
        end = code.end(node)
        splice = Splice(end - len(node.attr), end, edit.new)
        return Anchor(node, lambda: [splice], lambda other: any(other is effect for effect in effects))

    return Sites(tuple(anchor(node) for node in having(old)), tuple(effects))
