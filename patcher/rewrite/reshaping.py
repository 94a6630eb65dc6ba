"""Turn a matched expression into what a template says with as few changes as may be, so that its style stays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from patcher.rewrite import commas
from patcher.rewrite.code import position
from patcher.rewrite.marking import Splice
from patcher.rewrite.pattern import meta, run_of
from patcher.rewrite.template import loose, tight

if TYPE_CHECKING:
    from patcher.rewrite.code import Code

Fill = Callable[[ast.AST], str]


def reshape(code: Code, old: ast.AST, new: ast.AST, given: ast.AST, fill: Fill) -> list[Splice] | None:
    """The changes inside `given`, which `old` matches, that make it what `new` says; None where it must be rewritten.

    `fill` gives the text of a part of the template.
    """
    if ast.dump(old) == ast.dump(new):
        return []
    if type(old) is type(new) is type(given) and not _variable(old) and not _variable(new):
        match old, new, given:
            case ast.Call(), ast.Call(), ast.Call():
                return _call(code, old, new, given, fill)
            case ast.Attribute(), ast.Attribute(), ast.Attribute():
                return _attribute(code, old, new, given, fill)
            case ast.keyword(), ast.keyword(), ast.keyword():
                return _keyword(code, old, new, given, fill)
            case (
                ast.Await() | ast.Expr() | ast.Return() | ast.Assign() | ast.With() | ast.AsyncWith() | ast.withitem(),
                _,
                _,
            ):
                return _fields(code, old, new, given, fill)
            case ast.If(), ast.If(), ast.If():
                return _fields(code, old, new, given, fill)
    if isinstance(new, ast.expr) and isinstance(given, ast.expr):
        text = fill(new)
        if loose(new) and not _variable(new) and tight(code.parents.get(given), given):
            text = f"({text})"
        return [Splice(code.start(given), code.end(given), text)]
    return None


def _variable(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and meta(node.id) is not None


def _attribute(
    code: Code, old: ast.Attribute, new: ast.Attribute, given: ast.Attribute, fill: Fill
) -> list[Splice] | None:
    inner = reshape(code, old.value, new.value, given.value, fill)
    if inner is None or old.attr == new.attr:
        return inner
    if meta(new.attr):
        return None
    end = code.end(given)
    return [*inner, Splice(end - len(given.attr), end, new.attr)]


def _keyword(code: Code, old: ast.keyword, new: ast.keyword, given: ast.keyword, fill: Fill) -> list[Splice] | None:
    inner = reshape(code, old.value, new.value, given.value, fill)
    if inner is None or old.arg == new.arg:
        return inner
    if new.arg is None or given.arg is None or meta(new.arg):
        return None
    start = code.start(given)
    return [Splice(start, start + len(given.arg), new.arg), *inner]


def _fields(code: Code, old: ast.AST, new: ast.AST, given: ast.AST, fill: Fill) -> list[Splice] | None:
    splices: list[Splice] = []
    for name in old._fields:
        one, two, mine = getattr(old, name), getattr(new, name), getattr(given, name)
        listed = [(one, two, mine)] if not isinstance(one, list) else None
        if listed is None:
            if [ast.dump(item) for item in one] == [ast.dump(item) for item in two]:
                continue
            if not len(one) == len(two) == len(mine) or any(run_of(item) for item in [*one, *two]):
                return None
            listed = list(zip(one, two, mine, strict=True))
        for item in listed:
            if not all(isinstance(part, ast.AST) for part in item):
                if item[0] != item[1]:
                    return None
                continue
            inner = reshape(code, *item, fill)
            if inner is None:
                return None
            splices += inner
    return splices


def _call(code: Code, old: ast.Call, new: ast.Call, given: ast.Call, fill: Fill) -> list[Splice] | None:
    func = reshape(code, old.func, new.func, given.func, fill)
    if func is None:
        return None
    wanted: list[ast.AST] = [*old.args, *old.keywords]
    wished: list[ast.AST] = [*new.args, *new.keywords]
    partners = _partners(old, given)
    if partners is None:
        return None
    items = commas.argument_items(code, given)
    order = sorted([*given.args, *given.keywords], key=position)
    gone: set[int] = set()
    splices = list(func)
    appended: list[str] = []
    codes = SequenceMatcher(None, [*map(ast.dump, wanted)], [*map(ast.dump, wished)], autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            continue
        if any(run_of(item) for item in [*wanted[i1:i2], *wished[j1:j2]]):
            return None
        if tag == "insert" and i1 == len(wanted):
            appended += [fill(item) for item in wished[j1:j2]]
            continue
        if j2 - j1 > i2 - i1:
            return None
        for one, two in zip(wanted[i1:i2], wished[j1:j2], strict=False):
            inner = reshape(code, one, two, partners[id(one)], fill)
            if inner is None:
                return None
            splices += inner
        gone |= {order.index(partners[id(item)]) for item in wanted[i1 + j2 - j1 : i2]}
    if appended and (gone or not items.spans):
        return None
    if gone:
        splices += commas.without(items, frozenset(gone))
    for text in appended[:1] if len(appended) == 1 else []:
        splices += commas.with_appended(items, text)
    return splices if len(appended) < 2 else None


def _partners(old: ast.Call, given: ast.Call) -> dict[int, ast.expr | ast.keyword] | None:
    """The argument of the matched call for each argument of the pattern; runs have none."""
    runs = [index for index, item in enumerate(old.args) if run_of(item)]
    if len(runs) > 1:
        return None
    found: dict[int, ast.expr | ast.keyword] = {}
    head = old.args[: runs[0]] if runs else old.args
    tail = old.args[runs[0] + 1 :] if runs else []
    if len(head) + len(tail) > len(given.args):
        return None
    for one, two in [*zip(head, given.args, strict=False), *zip(reversed(tail), reversed(given.args), strict=False)]:
        found[id(one)] = two
    for keyword in old.keywords:
        partner = next((other for other in given.keywords if other.arg == keyword.arg), None)
        if run_of(keyword):
            continue
        if partner is None or keyword.arg is None:
            return None
        found[id(keyword)] = partner
    return found
