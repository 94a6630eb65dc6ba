"""Edits of what a function or class says of itself: parameters, defaults, decorators, bases, or all of it.

Each puts `new` in the place of `old`, adds `new`, or takes `old` out:

    @register("fsdp")                       set-decorator
    class Worker(Base, Mixin):              set-base
        def run(self, timeout=600):         set-default, set-parameter
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas
from patcher.rewrite.blocks import place
from patcher.rewrite.filling import Filler
from patcher.rewrite.pattern import pattern
from patcher.rewrite.sites import Anchor, Change, Sites, Splice, Step
from patcher.rewrite.syntax import equal, parts

if TYPE_CHECKING:
    from patcher.rewrite.edits import ReplaceFunction, SetBase, SetDecorator, SetDefault, SetEntry, SetParameter
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope


def set_default(scopes: Sequence[Scope], edit: SetDefault) -> Sites:
    """The default of a function's parameter or of a class's field; None of `old` or `new` stands for no default."""
    old, new = (None if text is None else cst.parse_expression(text) for text in (edit.old, edit.new))

    def make(made: CSTNode) -> CSTNode:
        if isinstance(made, cst.Param):
            spaced = made.annotation is not None
            sign = made.equal if isinstance(made.equal, cst.AssignEqual) else _sign(spaced)
            return made.with_changes(default=new, equal=sign if new is not None else cst.MaybeSentinel.DEFAULT)
        if not isinstance(made, cst.AnnAssign):
            return made.with_changes(value=new)
        if new is None:
            return made.with_changes(value=None, equal=cst.MaybeSentinel.DEFAULT)
        return made.with_changes(value=new, equal=made.equal if made.value is not None else _sign(True))

    anchors, effects = [], []
    for node, value in _with_default(scopes, edit.parameter):
        if _alike(value, old):
            anchors.append(Anchor.changed(node, make))
        elif _alike(value, new):
            effects.append(node)
    return Sites(tuple(anchors), tuple(effects))


def _sign(spaced: bool) -> cst.AssignEqual:
    space = cst.SimpleWhitespace(" " if spaced else "")
    return cst.AssignEqual(space, space)


def _alike(one: CSTNode | None, two: CSTNode | None) -> bool:
    return equal(one, two) if one is not None and two is not None else one is two


def _with_default(scopes: Sequence[Scope], name: str) -> Iterator[tuple[CSTNode, CSTNode | None]]:
    """The parameters of functions and the fields of classes with this name, and their defaults."""
    for scope in scopes:
        if isinstance(scope, cst.FunctionDef):
            yield from ((one, one.default) for one in parameters(scope) if one.name.value == name)
        elif isinstance(scope, cst.ClassDef) and isinstance(scope.body, cst.IndentedBlock):
            for line in scope.body.body:
                for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                    match small:
                        case (
                            cst.AnnAssign(target=cst.Name(value=found))
                            | cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=found))])
                        ) if found == name:
                            yield small, small.value


def parameters(function: cst.FunctionDef) -> list[cst.Param]:
    """All of a function's parameters with a name of their own, `*args` and `**kwargs` left out."""
    of = function.params
    return [*of.posonly_params, *of.params, *of.kwonly_params]


# Items of a list: parameters, decorators, bases


def set_parameter(scopes: Sequence[Scope], edit: SetParameter) -> Sites:
    """A parameter of a function's signature; `/`, `*`, `*args` and `**kwargs` stay where they are."""

    def change(made: CSTNode, old: int | None, new: CSTNode | None, behind: int | None) -> CSTNode:
        assert isinstance(made, cst.FunctionDef)
        items = commas.of_parameters(made)
        last = len(items.items) - (made.params.star_kwarg is not None)
        return commas.to_parameters(made, changed(items, old, new, last if behind is None else behind + 1))

    def listed(scope: CSTNode) -> Sequence[CSTNode] | None:
        return commas.of_parameters(scope).items if isinstance(scope, cst.FunctionDef) else None

    def named(item: CSTNode, name: str) -> bool:
        match item:
            case cst.Param(name=cst.Name(value=value)):
                return value == name.lstrip("*")
        return isinstance(item, cst.ParamStar) and name == "*"

    return in_lists(scopes, edit, listed, read_parameter, change, named)


def read_parameter(text: str) -> CSTNode:
    """A parameter as it is written in a record: `timeout: int = 600`."""
    function = cst.parse_statement(f"def f({text}): pass")
    assert isinstance(function, cst.FunctionDef)
    return commas.of_parameters(function).items[0]


def set_decorator(scopes: Sequence[Scope], edit: SetDecorator) -> Sites:
    """A decorator, compared as a whole with its arguments; the outermost place is the first."""

    def change(made: CSTNode, old: int | None, new: CSTNode | None, behind: int | None) -> CSTNode:
        assert isinstance(made, (cst.FunctionDef, cst.ClassDef))
        found = [*made.decorators]
        if old is not None and isinstance(new, cst.Decorator):
            found[old] = new.with_changes(leading_lines=found[old].leading_lines)
        elif old is not None:
            del found[old]
        elif isinstance(new, cst.Decorator):
            found.insert(0 if behind is None else behind + 1, new)
        return made.with_changes(decorators=found)

    def listed(scope: CSTNode) -> Sequence[CSTNode] | None:
        return scope.decorators if isinstance(scope, (cst.FunctionDef, cst.ClassDef)) else None

    def read(text: str) -> CSTNode:
        return cst.Decorator(cst.parse_expression(text.strip().removeprefix("@")))

    return in_lists(scopes, edit, listed, read, change, lambda item, text: equal(item, read(text)))


def set_base(scopes: Sequence[Scope], edit: SetBase) -> Sites:
    """A base of a class, or a keyword such as `metaclass=Registry`; without any the parentheses go."""

    def change(made: CSTNode, old: int | None, new: CSTNode | None, behind: int | None) -> CSTNode:
        assert isinstance(made, cst.ClassDef)
        call = cst.Call(cst.Name("f"), [*made.bases, *made.keywords])
        items = commas.of_call(call)
        at = 0 if behind is None else behind + 1
        if isinstance(new, cst.Arg) and new.keyword is not None:
            at = len(items.items)
        args = commas.to_call(call, changed(items, old, new, at)).args
        bare = {} if args else {"lpar": cst.MaybeSentinel.DEFAULT, "rpar": cst.MaybeSentinel.DEFAULT}
        bases = [arg for arg in args if arg.keyword is None]
        return made.with_changes(bases=bases, keywords=[arg for arg in args if arg.keyword is not None], **bare)

    def listed(scope: CSTNode) -> Sequence[CSTNode] | None:
        return [*scope.bases, *scope.keywords] if isinstance(scope, cst.ClassDef) else None

    def read(text: str) -> CSTNode:
        call = cst.parse_expression(f"f({text})")
        assert isinstance(call, cst.Call)
        return call.args[0]

    return in_lists(scopes, edit, listed, read, change, lambda item, text: equal(item, read(text)))


def changed(items: commas.Items, old: int | None, new: CSTNode | None, at: int) -> commas.Items:
    """The items with `new` in the place of the one at `old`, or without it; where `old` is None, with `new` at `at`."""
    if old is None:
        return commas.inserted(items, at, new)  # type: ignore[arg-type]
    return commas.without(items, old) if new is None else commas.replaced(items, old, new)  # type: ignore[arg-type]


def in_lists(
    holders: Iterable[CSTNode],
    edit: SetParameter | SetDecorator | SetBase | SetEntry,
    listed: Callable[[CSTNode], Sequence[CSTNode] | None],
    read: Callable[[str], CSTNode],
    change: Callable[..., CSTNode],
    named: Callable[[CSTNode, str], bool],
) -> Sites:
    """The lists that have `old` and not `new`, and those with the effect.

    `listed` gives a holder's items; `change(holder, old=index, new=item, behind=index)` gives the holder with the edit
    made, where each but the holder may be None.
    """
    old, new = (None if text is None else read(text) for text in (edit.old, edit.new))
    anchors, effects = [], []
    for holder in holders:
        items = listed(holder)
        if items is None:
            continue
        has_old = _index(items, lambda item: old is not None and equal(item, old))
        has_new = _index(items, lambda item: new is not None and equal(item, new))
        behind = _index(items, lambda item: edit.behind is not None and named(item, edit.behind))
        made = partial(change, old=has_old, new=new, behind=behind)
        here = old is None and (edit.behind is None or behind is not None)
        if (new is None or has_new is None) and (has_old is not None or here):
            node = items[has_old] if has_old is not None else holder
            anchors.append(Anchor(node, partial(list, [Change(holder, made)])))
        elif has_old is None:
            effects.append(items[has_new] if has_new is not None else holder)
    return Sites(tuple(anchors), tuple(effects))


def _index(items: Sequence[CSTNode], wanted: Callable[[CSTNode], bool]) -> int | None:
    return next((index for index, item in enumerate(items) if wanted(item)), None)


# A whole function


def replace_function(source: Source, scopes: Sequence[Scope], edit: ReplaceFunction) -> Sites:
    """A whole function or class: an anchor if its digest is `was`, an effect if it is the new one but for layout."""
    new = pattern(edit.code)
    anchors, effects = [], []
    for scope in scopes:
        if not isinstance(scope, (cst.FunctionDef, cst.ClassDef)):
            continue
        if len(new.body) == 1 and equal(scope, new.body[0]):
            effects.append(scope)
        elif digest(scope) == edit.was:
            anchors.append(Anchor(scope, partial(_instead, source, scope, edit.code)))
    return Sites(tuple(anchors), tuple(effects))


def _instead(source: Source, scope: CSTNode, code: str) -> list[Step]:
    block, index = place(source, scope)
    return [Splice(block, index, index + 1, tuple(Filler(source, {}).lines(pattern(code))))]


def digest(node: CSTNode) -> str:
    """What a node says, layout and comments left out, as 16 hexadecimal digits."""
    return hashlib.sha256("\0".join(_significant(node)).encode()).hexdigest()[:16]


def _significant(node: CSTNode) -> Iterator[str]:
    """The kinds of the nodes and what stands in them. What is not there says nothing, so that new fields of later
    versions of libcst change no digest."""
    yield type(node).__name__
    for name in parts(type(node)):
        value: Any = getattr(node, name)
        if isinstance(value, CSTNode):
            yield from _significant(value)
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from _significant(one)
        elif isinstance(value, str) and value:
            yield value
    yield ")"
