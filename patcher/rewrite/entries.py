"""Edits of one entry of a dictionary, list, tuple or set that has a name.

    ENV = {"env_vars": {"TOKENIZERS_PARALLELISM": "true"}}

The inner dictionary is called `env_vars`, the outer one `ENV`. What a call such as `frozenset({…})` wraps has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas, names
from patcher.rewrite.definitions import changed, in_lists
from patcher.rewrite.sites import Sites
from patcher.rewrite.syntax import equal, only

if TYPE_CHECKING:
    from patcher.rewrite.edits import SetEntry
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope

_KINDS = (cst.List, cst.Set, cst.Dict, cst.Tuple)


def set_entry(source: Source, scopes: Sequence[Scope], edit: SetEntry) -> Sites:
    """An entry of each container of this name: of a dictionary by its key, of a list, set or tuple by itself."""
    holders = [one for one in containers(source, source.nodes(scopes)) if name_of(source, one) == edit.container]
    kinds = (cst.Dict,) if edit.key is not None else (cst.List, cst.Set, cst.Tuple)
    holders = [one for one in holders if isinstance(one, kinds)]

    def read(text: str) -> CSTNode:
        if edit.key is not None:
            return cst.DictElement(cst.parse_expression(edit.key), cst.parse_expression(text))
        return cst.Element(cst.parse_expression(text))

    def change(made: CSTNode, old: int | None, new: CSTNode | None, behind: int | None) -> CSTNode:
        assert isinstance(made, _KINDS)
        items = commas.of_brackets(made)
        if old is not None and isinstance(new, (cst.DictElement, cst.Element)):
            # The key, and the white space around its colon, stay as they are written.
            new = items.items[old].with_changes(value=new.value)
        return commas.to_brackets(made, changed(items, old, new, len(items.items) if behind is None else behind + 1))

    def named(item: CSTNode, text: str) -> bool:
        part = item.key if isinstance(item, cst.DictElement) else getattr(item, "value", item)
        return equal(part, cst.parse_expression(text))

    return in_lists(holders, edit, _listed(edit, named), read, change, named)


def _listed(edit: SetEntry, named: Callable[[CSTNode, str], bool]) -> Callable[[CSTNode], Sequence[CSTNode] | None]:
    def listed(node: CSTNode) -> Sequence[CSTNode] | None:
        items: Sequence[CSTNode] = node.elements  # type: ignore[attr-defined]
        if edit.key is not None and edit.old is None and edit.new is not None:
            # A key that has another value is not new there.
            mine = [item for item in items if named(item, edit.key)]
            value = cst.parse_expression(edit.new)
            if mine and not any(isinstance(one, cst.DictElement) and equal(one.value, value) for one in mine):
                return None
        return items

    return listed


def containers(source: Source, nodes: Sequence[CSTNode]) -> list[CSTNode]:
    """The dictionaries, lists, sets and tuples in brackets that have a name."""
    found = only(nodes, *_KINDS)
    return [one for one in found if not (isinstance(one, cst.Tuple) and not one.lpar) and name_of(source, one)]


def name_of(source: Source, node: CSTNode) -> str | None:
    """What a container is assigned to, passed as or kept under; of `self.table` its last part."""
    above = source.parents[id(node)]
    match above:
        case cst.Arg(keyword=cst.Name(value=name)):
            return name
        case cst.Arg():
            call = source.parents[id(above)]
            return name_of(source, call) if isinstance(call, cst.Call) and len(call.args) == 1 else None
        case (
            cst.Assign(targets=[cst.AssignTarget(target=target)])
            | cst.AnnAssign(target=target)
            | cst.AugAssign(target=target)
        ):
            return names.dotted(target)[-1] if isinstance(target, (cst.Name, cst.Attribute)) else _string(target)
        case cst.DictElement(key=cst.SimpleString() as key, value=value) if value is node:
            text = key.evaluated_value
            return text if isinstance(text, str) else None
    return None


def _string(target: CSTNode) -> str | None:
    """Of `settings["env"]` the key."""
    match target:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            text = key.evaluated_value
            return text if isinstance(text, str) else None
    return None
