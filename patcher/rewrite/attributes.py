"""Rename the last part of dotted expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from patcher.rewrite import names
from patcher.rewrite.sites import Anchor, Sites
from patcher.rewrite.syntax import only

if TYPE_CHECKING:
    from patcher.rewrite.edits import RenameAttribute
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope


def rename_attribute(source: Source, scopes: Sequence[Scope], edit: RenameAttribute) -> Sites:
    table = names.imports(source.everything)
    old = tuple(edit.old.split("."))
    found = [*only(source.nodes(scopes), cst.Attribute)]

    def having(tail: names.Parts) -> list[cst.Attribute]:
        return [n for n in found if n.attr.value == tail[-1] and names.ends_in(names.resolve(n, table), tail)]

    effects = having((*old[:-1], edit.new))

    def make(made: cst.CSTNode) -> cst.CSTNode:
        return made.with_changes(attr=cst.Name(edit.new))

    return Sites(tuple(Anchor.changed(node, make, effects) for node in having(old)), tuple(effects))
