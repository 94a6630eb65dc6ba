"""Replace what a pattern matches, and insert statements beside what one matches: the edits `replace` and `insert`.

A place counts as done where the replacement, taken as a pattern, matches. If the replacement matches all that the
pattern does, as `g($X)` does for `g(g($X))`, that says nothing, and the record's own marker tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst
from libcst import CSTNode

from patcher.rewrite.arguments import without_argument
from patcher.rewrite.blocks import emptied, pass_, place
from patcher.rewrite.filling import Filler, fitting, reshaped
from patcher.rewrite.marker import line_markers
from patcher.rewrite.matching import Bindings, Match, find, meta, same
from patcher.rewrite.pattern import Pattern, pattern
from patcher.rewrite.sites import Anchor, Change, Sites, Splice, Step
from patcher.rewrite.syntax import IMPORTS, statements, walk

if TYPE_CHECKING:
    from patcher.rewrite.edits import Insert, Mark, Replace
    from patcher.rewrite.source import Source
    from patcher.rewrite.syntax import Scope


def replace(source: Source, scopes: Sequence[Scope], edit: Replace, mark: Mark) -> Sites:
    """Matches of the pattern are anchors, and matches of the replacement effects: see the module."""
    wanted, template = pattern(edit.pattern), pattern(edit.replacement)
    found = find(source, scopes, wanted)
    pair = wanted.argument is not None and template.argument is not None
    # An expression that statements, or nothing at all, take the place of must be a statement by itself: `gone()`.
    if not template.body or (wanted.expression is not None and template.expression is None and not pair):
        found = [widened for one in found if (widened := _statement(source, one))]
    bare = template.expression is not None and meta(template.expression)
    effects = find(source, scopes, template) if template.body and not bare else []
    if not _general(template, wanted):
        found = [one for one in found if not any(_part_of(source, one, effect) for effect in effects)]
    else:
        # What the record itself has written may look like an anchor once more; its marker tells.
        found = [one for one in found if not _made_by(source, one, mark)]
        effects = [effect for effect in effects if not any(effect.nodes == one.nodes for one in found)]

    def anchor(one: Match) -> Anchor:
        def twin(node: CSTNode) -> bool:
            return any(node is effect.nodes[0] and _agree(one.bindings, effect.bindings) for effect in effects)

        return Anchor(one.nodes[0], lambda: _steps(source, one, wanted, template), twin)

    return Sites(tuple(anchor(one) for one in found), tuple(effect.nodes[0] for effect in effects))


def _agree(one: Bindings, two: Bindings) -> bool:
    """Whether what two matches bound by the same names is the same."""
    return all(same(value, two[name]) for name, value in one.items() if name in two)


def _made_by(source: Source, one: Match, mark: Mark) -> bool:
    first, last = source.lines(one.nodes[0])[0], source.lines(one.nodes[-1])[1]
    return any(mark.record in line_markers(source.line(number), mark.word) for number in range(first, last + 1))


def _general(general: Pattern, special: Pattern) -> bool:
    """Whether a template matches all that a pattern matches, so that a match says nothing about an edit."""
    return len(general.body) == len(special.body) and same(tuple(general.body), tuple(special.body))


def _statement(source: Source, one: Match) -> Match | None:
    """The statement that a matched expression makes up by itself; a keyword argument stays as it is."""
    if not isinstance(one.nodes[0], cst.BaseExpression):
        return one
    above = source.parents[id(one.nodes[0])]
    return Match((above,), one.bindings) if isinstance(above, cst.Expr) else None


def _part_of(source: Source, one: Match, effect: Match) -> bool:
    """Whether a place lies in what an effect spells out, and not in what its metavariables bound."""
    around = {id(one.nodes[0]), *(id(above) for above in source.ancestors(one.nodes[0]))}
    if not any(id(node) in around for node in effect.nodes):
        return False
    return not any(id(node) in around for bound in effect.bindings.values() for node in bound)


def _steps(source: Source, one: Match, wanted: Pattern, template: Pattern) -> list[Step]:
    """The smallest change that makes the replacement of a match: parts of it if they are alike, else the whole."""
    first, fill = one.nodes[0], Filler(source, one.bindings)
    # A template with comments above its code is written as it is: what only changes a name in a call has none to put.
    if template.body and len(one.nodes) == len(wanted.body) == len(template.body) and not template.comments:
        small = _reshaped(source, fill, one, wanted, template)
        if small is not None:
            return small
    if isinstance(first, cst.Arg):
        call = source.parents[id(first)]
        if not template.body and isinstance(call, cst.Call):
            return [without_argument(call, first)]
        assert template.expression is not None
        value = fill.node(template.expression)
        return [Change(first, lambda made: cst.Arg(value, comma=made.comma))]  # type: ignore[arg-type,attr-defined]
    if isinstance(first, cst.BaseExpression):
        above = source.parents[id(first)]
        assert template.expression is not None
        made = fitting(fill.node(template.expression, above), template.expression, first, above)
        return [Change(first, lambda _: made)]
    block, index = place(source, first)
    lines = fill.lines(template)
    if not lines and emptied(block, len(one.nodes)):
        lines = [pass_()]
    return [Splice(block, index, index + len(one.nodes), tuple(lines))]


def _reshaped(source: Source, fill: Filler, one: Match, wanted: Pattern, template: Pattern) -> list[Step] | None:
    steps: list[Step] = []
    for old, new, given in zip(wanted.body, template.body, one.nodes, strict=True):
        if isinstance(given, cst.Arg):
            if wanted.argument is None or template.argument is None:
                return None
            old, new = wanted.argument, template.argument
        elif isinstance(given, cst.BaseExpression) and isinstance(old, cst.Expr) and isinstance(new, cst.Expr):
            old, new = old.value, new.value
        made = reshaped(fill, old, new, given, source.parents[id(given)])
        if made is None:
            return None
        if made is not given:
            steps.append(Change(given, lambda _, made=made: made))  # type: ignore[misc]
    return steps


def insert(source: Source, scopes: Sequence[Scope], edit: Insert) -> Sites:
    """A match of `anchor` whose block lacks the code, or a scope that lacks it, is an anchor."""
    template = pattern(edit.code)
    effects = find(source, scopes, template)
    made = tuple(effect.nodes[0] for effect in effects)
    if edit.where in ("before", "after"):
        anchors = [
            Anchor(one.nodes[0], partial(_beside, source, one, edit, template))
            for one in find(source, scopes, pattern(edit.anchor or ""))
            if not any(_near(source, one, effect) for effect in effects)
        ]
        return Sites(tuple(anchors), made)
    around = {id(above) for effect in effects for above in source.ancestors(effect.nodes[0])}
    anchors = [Anchor(s, partial(_inside, source, s, edit, template)) for s in scopes if id(s) not in around]
    return Sites(tuple(anchors), made)


def _near(source: Source, one: Match, effect: Match) -> bool:
    block, _ = place(source, _whole(source, one.nodes[0]))
    return any(source.statement(effect.nodes[0]) is small for small, _ in statements(block))


def _beside(source: Source, one: Match, edit: Insert, template: Pattern) -> list[Step]:
    behind = edit.where == "after"
    block, index = place(source, _whole(source, one.nodes[-1] if behind else one.nodes[0]))
    lines = _spaced(Filler(source, one.bindings).lines(template), edit.code)
    return [Splice(block, index + behind, index + behind, lines, behind)]


def _spaced(lines: Sequence[CSTNode], code: str) -> tuple[CSTNode, ...]:
    """The lines with the blank lines at the top of `code`, which stand between them and the statement beside them."""
    blank = [cst.EmptyLine(indent=False)] * (len(code) - len(code.lstrip("\n")))
    first, *others = lines
    return first.with_changes(leading_lines=[*blank, *first.leading_lines]), *others  # type: ignore[attr-defined]


def _whole(source: Source, node: CSTNode) -> CSTNode:
    """The statement around a node that others can be put beside: of an `elif`, the whole `if`."""
    found = source.statement(node)
    while isinstance(above := source.parents[id(found)], cst.If):
        found = above
    return found


def _inside(source: Source, scope: Scope, edit: Insert, template: Pattern) -> list[Step]:
    """Put the code at a scope's end, at its start, behind docstring and `__future__` imports, or before its imports."""
    block = scope if isinstance(scope, cst.Module) else scope.body
    lines = tuple(Filler(source, {}).lines(template))
    body = [small for small, _ in statements(block)]
    if edit.where == "end" and body:
        if isinstance(lines[0], (cst.FunctionDef, cst.ClassDef)):
            lead = [cst.EmptyLine(indent=False), *lines[0].leading_lines]
            lines = (lines[0].with_changes(leading_lines=lead), *lines[1:])
        return [Splice(block, len(body), len(body), lines, behind=True)]
    index = 1 if body and _docstring(body[0]) else 0
    while index < len(body) and _future(body[index]):
        index += 1
    if edit.where == "prologue":
        imports = (i for i, s in enumerate(body) if i >= index and any(isinstance(n, IMPORTS) for n in walk(s)))
        index = next(imports, index)
    return [Splice(block, index, index, lines)]


def _docstring(small: CSTNode) -> bool:
    match small:
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString() as text):
            return isinstance(text.evaluated_value, str)
    return False


def _future(small: CSTNode) -> bool:
    return (
        isinstance(small, cst.ImportFrom) and isinstance(small.module, cst.Name) and small.module.value == "__future__"
    )
