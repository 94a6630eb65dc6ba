"""A function, class or container that differs -> edits of its parameters, decorators, bases, defaults and entries.

def run(self, limit=5):     ->  def run(self, limit=8, strict=True):        set-default limit, set-parameter strict
ENV = {"A": "1"}            ->  ENV = {"A": "1", "B": "2"}                  set-entry of ENV, key "B"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas
from patcher.rewrite.definitions import digest, parameters
from patcher.rewrite.edits import (
    Edit,
    ReplaceFunction,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    Setting,
)
from patcher.rewrite.entries import containers, name_of
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import SCOPES, equal, walk


def edits_of_definition(
    file: str, base: Source, fork: Source, old: CSTNode, new: CSTNode, scope: str | None
) -> Iterator[tuple[Edit, ...]]:
    """What a function or class says of itself, where its body is the same; or a field of a class."""
    if isinstance(old, SCOPES) and type(old) is type(new) and equal(old.body, new.body):
        header = header_edits(file, base, fork, old, new)
        if header:
            yield header
    elif scope is not None and isinstance(old, cst.SimpleStatementLine) and isinstance(new, cst.SimpleStatementLine):
        match old.body[0], new.body[0]:
            case (
                cst.AnnAssign(target=cst.Name(value=name), value=one),
                cst.AnnAssign(target=cst.Name(value=other), value=two),
            ) if name == other and _is_class(base, scope):
                yield (SetDefault(file=file, within=scope, parameter=name, old=_code(base, one), new=_code(fork, two)),)


def _is_class(code: Source, scope: str) -> bool:
    return any(isinstance(node, cst.ClassDef) for node in code.within(scope))


def header_edits(file: str, base: Source, fork: Source, old: CSTNode, new: CSTNode) -> tuple[Edit, ...]:
    """The edits that give one definition the other's decorators, parameters and bases; none where more differs."""
    place: dict[str, Any] = {"file": file, "within": base.qualified_name(old)}
    assert isinstance(old, SCOPES)
    assert isinstance(new, SCOPES)
    if old.name.value != new.name.value:
        return ()
    decorators = [_texts(code, [one.decorator for one in node.decorators]) for code, node in ((base, old), (fork, new))]
    found = _settings(SetDecorator, place, decorators[0], decorators[1])
    if isinstance(old, cst.ClassDef) and isinstance(new, cst.ClassDef):
        bases = [_texts(code, [*node.bases, *node.keywords]) for code, node in ((base, old), (fork, new))]
        found += _settings(SetBase, place, bases[0], bases[1])
    elif isinstance(old, cst.FunctionDef) and isinstance(new, cst.FunctionDef):
        found += _of_parameters(place, base, fork, old, new)
    return tuple(found)


def _of_parameters(
    place: dict[str, Any], base: Source, fork: Source, old: cst.FunctionDef, new: cst.FunctionDef
) -> list[Edit]:
    before = {one.name.value: one for one in parameters(old)}
    after = {one.name.value: one for one in parameters(new)}
    found: list[Edit] = []
    same: dict[str, str] = {}
    """Parameters that differ in their default alone, as they are written in the base."""
    bare: dict[str, Any] = {"default": None, "equal": cst.MaybeSentinel.DEFAULT}
    for name, one in before.items():
        two = after.get(name)
        if two is not None and not equal(one, two) and equal(one.with_changes(**bare), two.with_changes(**bare)):
            sides: dict[str, Any] = {"old": _code(base, one.default), "new": _code(fork, two.default)}
            found.append(SetDefault(**place, parameter=name, **sides))
            same[name] = _texts(base, [one])[0]
    items = [_texts(base, commas.of_parameters(old).items), _texts(fork, commas.of_parameters(new).items)]
    items[1] = [same.get(_name(text), text) for text in items[1]]
    return [*found, *_settings(SetParameter, place, items[0], items[1], _name)]


def _name(parameter: str) -> str:
    return parameter.split(":")[0].split("=")[0].strip()


def _settings(
    kind: Callable[..., Setting],
    place: dict[str, Any],
    old: Sequence[str],
    new: Sequence[str],
    named: Callable[[str], str] = lambda text: text,
) -> list[Edit]:
    """The items that changed, came and went."""
    found: list[Edit] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = min(i2 - i1, j2 - j1)
        found += [kind(**place, old=old[i1 + k], new=new[j1 + k]) for k in range(pairs)]  # type: ignore[misc]
        found += [kind(**place, old=text) for text in old[i1 + pairs : i2]]  # type: ignore[misc]
        for index in range(j1 + pairs, j2):
            last = index == len(new) - 1 and kind is not SetBase and kind is not SetDecorator
            behind = None if index == 0 or last else named(new[index - 1])
            found.append(kind(**place, new=new[index], behind=behind))  # type: ignore[arg-type]
    return found


def _texts(code: Source, nodes: Sequence[CSTNode]) -> list[str]:
    """Items as they are written, without the commas between them."""
    return [(_code(code, plain_item(node)) or "").rstrip(",") for node in nodes]


def _code(code: Source, node: CSTNode | None) -> str | None:
    return None if node is None else code.code(node).strip()


def plain_item(item: CSTNode) -> CSTNode:
    """An item without the comma and the white space behind it; a bare `*` cannot be without."""
    if isinstance(item, cst.ParamStar) or not hasattr(item, "comma"):
        return item
    fields: dict[str, Any] = {"comma": cst.MaybeSentinel.DEFAULT}
    for name in ("whitespace_after_arg", "whitespace_after_param"):
        if hasattr(item, name):
            fields[name] = cst.SimpleWhitespace("")
    return item.with_changes(**fields)


# Entries


def edits_of_entries(
    file: str, base: Source, fork: Source, old: CSTNode, new: CSTNode, scope: str | None
) -> Iterator[tuple[Edit, ...]]:
    """Entries of containers of one statement that changed, came or went."""
    sides = [
        {name_of(code, node): node for node in containers(code, [*walk(statement)])}
        for code, statement in ((base, old), (fork, new))
    ]
    for name, one in reversed(sides[0].items()):  # From the inside out: the smallest container that differs.
        two = sides[1].get(name)
        if two is None or type(one) is not type(two) or equal(one, two):
            continue
        place: dict[str, Any] = {"file": file, "within": scope, "container": name}
        if isinstance(one, cst.Dict) and isinstance(two, cst.Dict):
            edits = _of_keys(place, base, fork, one, two)
        else:
            items = [_texts(code, node.elements) for code, node in ((base, one), (fork, two))]  # type: ignore[attr-defined]
            edits = _settings(SetEntry, place, items[0], items[1])
        if edits:
            yield tuple(edits)


def _of_keys(place: dict[str, Any], base: Source, fork: Source, one: cst.Dict, two: cst.Dict) -> list[Edit]:
    before, after = (
        {_code(code, item.key) or "": _code(code, item.value) for item in node.elements
         if isinstance(item, cst.DictElement)} for code, node in ((base, one), (fork, two))
    )  # fmt: skip
    keys = list(after)
    found: list[Edit] = []
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) == after.get(key):
            continue
        index = keys.index(key) if key in after else 0
        added = key not in before and index not in (0, len(keys) - 1)
        behind = keys[index - 1] if added else None
        found.append(SetEntry(**place, key=key, old=before.get(key), new=after.get(key), behind=behind))
    return found


# Whole functions


def whole_function(file: str, base: Source, code: str, old: CSTNode, new: CSTNode) -> ReplaceFunction | None:
    """A function in the place of one of the same name; `code` is the new one's."""
    if type(old) is not type(new) or not isinstance(old, cst.FunctionDef) or not isinstance(new, cst.FunctionDef):
        return None
    if old.name.value != new.name.value:
        return None
    return ReplaceFunction(file=file, within=base.qualified_name(old), was=digest(old), code=code)
