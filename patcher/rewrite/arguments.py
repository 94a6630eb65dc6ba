"""Rename, remove and add keyword arguments of calls, and rename attributes: edits that go by dotted names.

A call or an attribute is meant if its full name, resolved through the file's imports, ends in the edit's: for
`Engine.start` also `E.start`, after `from vllm.engine import Engine as E`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite import commas, names
from patcher.rewrite.matching import match
from patcher.rewrite.sites import Anchor, Change, Sites
from patcher.rewrite.syntax import only

if TYPE_CHECKING:
    from patcher.rewrite.edits import AddArgument, RemoveArgument, RenameArgument, RenameAttribute
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope

_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def rename_argument(source: Source, scopes: Sequence[Scope], edit: RenameArgument) -> Sites:
    """Calls with the old keyword are anchors, unless they have the new one too; calls with the new one are effects."""
    found = _calls(source, scopes, edit.call)
    effects = [
        new
        for call in found
        if (new := _keyword(call, edit.new)) and not _keyword(call, edit.old) and not _half_done(new, edit)
    ]

    def make(made: CSTNode) -> CSTNode:
        renamed = made.with_changes(keyword=cst.Name(edit.new))
        return renamed if edit.value is None else renamed.with_changes(value=_value(edit.value), equal=_TIGHT)

    anchors = [
        Anchor.changed(old, make, effects)
        for call in found
        if (old := _keyword(call, edit.old)) and not _keyword(call, edit.new)
    ]
    return Sites(tuple(anchors), tuple(effects))


def _value(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text.strip())


def _half_done(new: cst.Arg, edit: RenameArgument) -> bool:
    """Whether the name was changed, and the value that should have changed with it is still the old name's."""
    return edit.value is not None and names.dotted(new.value)[-1] == edit.old


def remove_argument(source: Source, scopes: Sequence[Scope], edit: RemoveArgument) -> Sites:
    """Calls with the keyword are anchors; all other calls of this name are effects."""

    def anchor(call: cst.Call, old: cst.Arg) -> Anchor:
        return Anchor(old, lambda: [without_argument(call, old)], _alike(call, edit.old))

    found = _calls(source, scopes, edit.call)
    anchors = [anchor(call, old) for call in found if (old := _keyword(call, edit.old))]
    return Sites(tuple(anchors), tuple(call for call in found if not _keyword(call, edit.old)))


def without_argument(call: cst.Call, argument: cst.Arg) -> Change:
    """Take one keyword argument out of a call."""
    name = argument.keyword.value if argument.keyword else ""

    def make(made: CSTNode) -> CSTNode:
        assert isinstance(made, cst.Call)
        index = next(i for i, arg in enumerate(made.args) if arg.keyword and arg.keyword.value == name)
        return commas.to_call(made, commas.without(commas.of_call(made), index))

    return Change(call, make)


def add_argument(source: Source, scopes: Sequence[Scope], edit: AddArgument) -> Sites:
    """Calls without the keyword are anchors; in those that have it, it is the effect, whatever its value."""
    new = cst.Arg(_value(edit.value), cst.Name(edit.new), equal=_TIGHT)

    def make(made: CSTNode) -> CSTNode:
        assert isinstance(made, cst.Call)
        match made.args:
            # `sum(x for x in y)` needs no parentheses around the generator; beside a second argument it does.
            case [cst.Arg(value=cst.GeneratorExp(lpar=[]) as sole) as arg]:
                inside = sole.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                made = made.with_changes(args=[arg.with_changes(value=inside)])
        return commas.to_call(made, commas.with_appended(commas.of_call(made), [new]))

    def anchor(call: cst.Call) -> Anchor:
        alike = _alike(call, edit.new)
        twins = {id(effect): of for effect, of in effects}
        return Anchor(call, lambda: [Change(call, make)], lambda node: id(node) in twins and alike(twins[id(node)]))

    found = _calls(source, scopes, edit.call)
    effects = [(keyword, call) for call in found if (keyword := _keyword(call, edit.new))]
    anchors = tuple(anchor(call) for call in found if not _keyword(call, edit.new))
    return Sites(anchors, tuple(keyword for keyword, _ in effects))


def rename_attribute(source: Source, scopes: Sequence[Scope], edit: RenameAttribute) -> Sites:
    """`args.old` is an anchor, `args.new` an effect; `old` by itself, a plain name, is neither."""
    table = names.imports(source.everything)
    old = tuple(edit.old.split("."))
    found = [*only(source.nodes(scopes), cst.Attribute)]

    def having(tail: names.Parts) -> list[cst.Attribute]:
        return [n for n in found if n.attr.value == tail[-1] and names.ends_in(names.resolve(n, table), tail)]

    effects = having((*old[:-1], edit.new))

    def make(made: CSTNode) -> CSTNode:
        return made.with_changes(attr=cst.Name(edit.new))

    return Sites(tuple(Anchor.changed(node, make, effects) for node in having(old)), tuple(effects))


def _calls(source: Source, scopes: Sequence[Scope], called: str) -> list[cst.Call]:
    """The calls whose full dotted name ends in `called`, in order."""
    table = names.imports(source.everything)
    tail = tuple(called.split("."))
    return [
        node
        for node in only(source.nodes(scopes), cst.Call)
        if isinstance(node.func, (cst.Name, cst.Attribute)) and names.ends_in(names.resolve(node.func, table), tail)
    ]


def _keyword(call: cst.Call, name: str) -> cst.Arg | None:
    return next((arg for arg in call.args if arg.keyword and arg.keyword.value == name), None)


def _alike(call: cst.Call, but: str) -> Callable[[CSTNode], bool]:
    """Tells a call that is the same but for one keyword argument, which just one of the two has."""

    def bare(one: cst.Call) -> cst.Call:
        return cst.Call(one.func, [arg for arg in one.args if not (arg.keyword and arg.keyword.value == but)])

    def alike(other: CSTNode) -> bool:
        return (
            isinstance(other, cst.Call)
            and len(other.args) != len(call.args)
            and match(bare(call), bare(other), {}) is not None
        )

    return alike
