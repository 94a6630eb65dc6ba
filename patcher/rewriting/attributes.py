"""Rename the last part of dotted expressions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from patcher.records.model import RenameAttribute
from patcher.rewriting import names
from patcher.rewriting.code import Code, Scope
from patcher.rewriting.marking import Splice
from patcher.rewriting.sites import Anchor, Sites


def rename_attribute(code: Code, scopes: Sequence[Scope], edit: RenameAttribute) -> Sites:
    table = names.imports(code.parents)
    old = tuple(edit.old.split("."))
    new = (*old[:-1], edit.new)
    found = [node for node in code.nodes(scopes) if isinstance(node, ast.Attribute)]

    def splices(node: ast.Attribute) -> list[Splice]:
        end = code.end(node)
        return [Splice(end - len(node.attr), end, edit.new)]

    def having(tail: names.Parts) -> list[ast.Attribute]:
        return [node for node in found if node.attr == tail[-1] and names.ends_in(names.resolve(node, table), tail)]

    anchors = [Anchor(node, lambda node=node: splices(node)) for node in having(old)]  # type: ignore[misc]
    return Sites(tuple(anchors), tuple(having(new)))
