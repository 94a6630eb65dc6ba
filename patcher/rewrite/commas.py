"""Take an item out of a list with commas, or put one into it, in the style that the list is written in.

start(                  start(                      Arguments, imports, elements, parameters and bases are each
    port,                   port,                   taken apart into `Items` by an `of_…`, changed, and put back by
)                           timeout=600,            its `to_…`. Trailing commas and comments stay.
                        )
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import libcst as cst
from libcst import CSTNode

Item: TypeAlias = (
    cst.Arg | cst.ImportAlias | cst.BaseElement | cst.BaseDictElement | cst.Param | cst.ParamSlash | cst.ParamStar
)
Brackets: TypeAlias = cst.List | cst.Set | cst.Dict | cst.Tuple
Space: TypeAlias = cst.BaseParenthesizableWhitespace
NOTHING = cst.SimpleWhitespace("")


@dataclass(frozen=True, slots=True)
class Items:
    """A list, and the white space before its first item and behind its last, or behind the last one's comma."""

    items: tuple[Item, ...]
    before: Space
    behind: Space


def of_call(call: cst.Call) -> Items:
    """The arguments of a call."""
    last = call.args[-1] if call.args else None
    if last is None:
        return Items((), NOTHING, call.whitespace_before_args)
    return Items(tuple(call.args), call.whitespace_before_args, _behind(last, last.whitespace_after_arg))


def to_call(call: cst.Call, items: Items) -> cst.Call:
    """The call with these arguments."""
    if not items.items:
        return call.with_changes(args=[], whitespace_before_args=items.behind)
    *most, last = items.items
    last = _ended(last.with_changes(whitespace_after_arg=NOTHING), items.behind, "whitespace_after_arg")
    return call.with_changes(args=[*most, last], whitespace_before_args=items.before)


def of_import(node: cst.ImportFrom) -> Items:
    """The names of a `from … import`, in parentheses or not."""
    assert not isinstance(node.names, cst.ImportStar)
    before = node.lpar.whitespace_after if node.lpar else NOTHING
    last = node.names[-1]
    return Items(tuple(node.names), before, _behind(last, node.rpar.whitespace_before if node.rpar else NOTHING))


def to_import(node: cst.ImportFrom, items: Items) -> cst.ImportFrom:
    """The import with these names, of which there is one at least."""
    *most, last = items.items
    if node.lpar is None or node.rpar is None:
        return node.with_changes(names=[*most, last.with_changes(comma=cst.MaybeSentinel.DEFAULT)])
    lpar, rpar = node.lpar.with_changes(whitespace_after=items.before), node.rpar
    if isinstance(last.comma, cst.Comma):
        last = last.with_changes(comma=last.comma.with_changes(whitespace_after=items.behind))
    else:
        rpar = rpar.with_changes(whitespace_before=items.behind)
    return node.with_changes(names=[*most, last], lpar=lpar, rpar=rpar)


_BRACKETS: dict[type[cst.CSTNode], tuple[str, str]] = {
    cst.List: ("lbracket", "rbracket"),
    cst.Set: ("lbrace", "rbrace"),
    cst.Dict: ("lbrace", "rbrace"),
}


def of_brackets(node: Brackets) -> Items:
    """The elements of a list, set, dictionary, or tuple in parentheses."""
    if isinstance(node, cst.Tuple):
        before, after = node.lpar[0].whitespace_after, node.rpar[-1].whitespace_before
    else:
        left, right = (getattr(node, name) for name in _BRACKETS[type(node)])
        before, after = left.whitespace_after, right.whitespace_before
    if not node.elements:
        return Items((), NOTHING, before if _has_comment(before) else NOTHING)
    return Items(tuple(node.elements), before, after)  # Also behind a last comma, other than in a call.


def to_brackets(node: Brackets, items: Items) -> Brackets:
    """The list, set, dictionary or tuple with these elements."""
    elements = list(items.items)
    before, after = items.before, items.behind
    if elements and isinstance(last := elements[-1], CSTNode) and isinstance(last.comma, cst.Comma):
        elements[-1] = last.with_changes(comma=last.comma.with_changes(whitespace_after=NOTHING))
    if isinstance(node, cst.Tuple):
        left = node.lpar[0].with_changes(whitespace_after=before)
        right = node.rpar[-1].with_changes(whitespace_before=after)
        return node.with_changes(elements=elements, lpar=[left, *node.lpar[1:]], rpar=[*node.rpar[:-1], right])
    one, two = _BRACKETS[type(node)]
    changes = {
        one: getattr(node, one).with_changes(whitespace_after=before),
        two: getattr(node, two).with_changes(whitespace_before=after),
    }
    return node.with_changes(elements=elements, **changes)


_GROUPS = ("posonly_params", "posonly_ind", "params", "star_arg", "kwonly_params", "star_kwarg")


def of_parameters(function: cst.FunctionDef) -> Items:
    """The parameters of a function as they stand in the text, with `/` and `*`."""
    found: list[Item] = []
    for name in _GROUPS:
        part = getattr(function.params, name)
        found += part if isinstance(part, (list, tuple)) else [part] if isinstance(part, CSTNode) else []  # type: ignore[list-item]
    behind = NOTHING
    if found and isinstance(found[-1], cst.Param):
        behind = _behind(found[-1], found[-1].whitespace_after_param)  # type: ignore[assignment]
    return Items(tuple(found), function.whitespace_before_params, behind)


def to_parameters(function: cst.FunctionDef, items: Items) -> cst.FunctionDef:
    """The function with these parameters, with `/` and `*` as they stand in the text."""
    spaced = [item.with_changes(whitespace_after_param=NOTHING) if isinstance(item, cst.Param) else item
              for item in items.items]  # fmt: skip
    if spaced and isinstance(spaced[-1], cst.Param):
        spaced[-1] = _ended(items.items[-1], items.behind, "whitespace_after_param")
    params = function.params.with_changes(**parameter_fields(spaced))
    return function.with_changes(params=params, whitespace_before_params=items.before)


def parameter_fields(items: Iterable[Item]) -> dict[str, Any]:
    """The fields of `cst.Parameters` for parameters in the order of the text, with `/` and `*` among them.

    What stands behind `*` or `*args` is for keywords alone, what stands before `/` for positions alone.
    """
    several: dict[str, list[Item]] = {name: [] for name in _GROUPS[::2]}
    single: dict[str, Any] = {name: getattr(cst.Parameters(), name) for name in _GROUPS[1::2]}
    name = "params"
    for item in items:
        if isinstance(item, cst.ParamSlash):
            single["posonly_ind"] = item
            several["posonly_params"], several["params"] = several["params"], []
        elif isinstance(item, cst.ParamStar) or (isinstance(item, cst.Param) and item.star == "*"):
            single["star_arg"], name = item, "kwonly_params"
        elif isinstance(item, cst.Param) and item.star == "**":
            single["star_kwarg"] = item
        else:
            several[name].append(item)
    return {**several, **single}


def _behind(last: Item, without: Space) -> Space:
    return last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else without


def _ended(last: Item, behind: Space, field: str) -> Item:
    if isinstance(last.comma, cst.Comma):
        return last.with_changes(comma=last.comma.with_changes(whitespace_after=behind))
    return last.with_changes(**{field: behind})


def _joined(one: Space, two: Space) -> Space:
    """The white space around something that is gone; its own comment goes with it, those of other lines stay."""
    if not isinstance(one, cst.ParenthesizedWhitespace):
        return two if _has_comment(two) else one
    if not isinstance(two, cst.ParenthesizedWhitespace):
        return one.with_changes(last_line=two) if _has_comment(one) else two
    return two.with_changes(first_line=one.first_line, empty_lines=[*one.empty_lines, *two.empty_lines])


def _has_comment(space: Space) -> bool:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return False
    return space.first_line.comment is not None or any(line.comment for line in space.empty_lines)


def _after(item: Item) -> Space:
    assert isinstance(item.comma, cst.Comma)
    return item.comma.whitespace_after


def without(items: Items, gone: int) -> Items:
    """Take one item out."""
    all_, last = list(items.items), gone == len(items.items) - 1
    item = all_.pop(gone)
    before = items.before if gone == 0 else _after(items.items[gone - 1])
    behind = items.behind if last else _after(item)
    # Which of the two white spaces stays: `(\n    a,\n    b,\n)` loses a whole line with `b`, `(a, b, c)` one comma.
    own_line = isinstance(before, cst.ParenthesizedWhitespace)
    ends_line = isinstance(behind, cst.ParenthesizedWhitespace)
    if not all_:
        joined = _joined(before, behind) if own_line and ends_line else NOTHING
        return Items((), NOTHING, joined)
    if own_line and ends_line:
        between = _joined(before, behind)
    elif not last and (gone == 0 or not ends_line):
        between = _joined(before, behind) if _has_comment(behind) else before
    elif gone and not _has_comment(before):
        all_[gone - 1] = all_[gone - 1].with_changes(comma=item.comma)
        between = behind
    else:
        between = _joined(before, behind)
    if gone == 0:
        return replace(items, items=tuple(all_), before=between)
    if last:
        return Items(tuple(all_), items.before, between)
    previous = all_[gone - 1]
    assert isinstance(previous.comma, cst.Comma)
    all_[gone - 1] = previous.with_changes(comma=previous.comma.with_changes(whitespace_after=between))
    return replace(items, items=tuple(all_))


def replaced(items: Items, index: int, new: Item) -> Items:
    """Another item in the place of one, with its comma and white space."""
    old = items.items[index]
    fields = ("comma", "whitespace_after_arg", "whitespace_after_param")
    kept = {name: getattr(old, name) for name in fields if hasattr(old, name) and hasattr(new, name)}
    return replace(items, items=(*items.items[:index], new.with_changes(**kept), *items.items[index + 1 :]))


def inserted(items: Items, index: int, new: Item) -> Items:
    """An item before the one at `index`, on a line of its own where that one has one."""
    if index >= len(items.items):
        return _with_appended(items, new)
    before = items.before if index == 0 else _after(items.items[index - 1])
    between: Space = cst.SimpleWhitespace(" ")
    if isinstance(before, cst.ParenthesizedWhitespace):
        line = cst.TrailingWhitespace(newline=before.first_line.newline)
        between = before.with_changes(first_line=line, empty_lines=[])
    new = new.with_changes(comma=cst.Comma(whitespace_after=between))
    return replace(items, items=(*items.items[:index], new, *items.items[index:]))


def with_appended(items: Items, new: Sequence[Item]) -> Items:
    """Put items behind the last one, each on a line of its own where the last one has one."""
    for item in new:
        items = _with_appended(items, item)
    return items


def _with_appended(items: Items, new: Item) -> Items:
    if not items.items:
        return Items((new,), NOTHING, items.behind)
    *most, last = items.items
    before = _after(most[-1]) if most else items.before
    between: Space = cst.SimpleWhitespace(" ")
    behind = items.behind
    if isinstance(before, cst.ParenthesizedWhitespace):
        between = before.with_changes(
            first_line=cst.TrailingWhitespace(newline=before.first_line.newline), empty_lines=[]
        )
        if isinstance(behind, cst.ParenthesizedWhitespace):
            between = between.with_changes(first_line=behind.first_line)
            behind = behind.with_changes(first_line=cst.TrailingWhitespace(newline=behind.first_line.newline))
    comma = last.comma if isinstance(last.comma, cst.Comma) else cst.MaybeSentinel.DEFAULT
    last = last.with_changes(comma=cst.Comma(whitespace_after=between))
    for name in ("whitespace_after_arg", "whitespace_after_param"):
        if hasattr(last, name):
            last = last.with_changes(**{name: NOTHING})
    return Items((*most, last, new.with_changes(comma=comma)), items.before, behind)
