"""Replace what a pattern matches, and insert statements beside what one matches."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from patcher.rewrite.arguments import taken_out
from patcher.rewrite.embedding import insert_statements, replace_statements
from patcher.rewrite.marker import line_markers
from patcher.rewrite.marking import Splice
from patcher.rewrite.matching import Bindings, Match, find, match, same
from patcher.rewrite.pattern import Pattern, meta, part, pattern
from patcher.rewrite.reshaping import reshape
from patcher.rewrite.sites import Anchor, Sites
from patcher.rewrite.template import fill, loose, tight

if TYPE_CHECKING:
    from patcher.rewrite.code import Code, Scope
    from patcher.rewrite.edits import Insert, Mark, Replace


def replace(code: Code, scopes: Sequence[Scope], edit: Replace, mark: Mark) -> Sites:
    wanted, template = pattern(edit.pattern), pattern(edit.replacement)
    found = find(code, scopes, wanted)
    if not template.body or (
        wanted.expression is not None and template.expression is None and not _pair(wanted, template)
    ):
        found = [widened for place in found if (widened := _statement(code, place))]
    effects = find(code, scopes, template) if template.body and not _bare(template) else []
    if not _pair_of_trees(template, wanted):
        found = [place for place in found if not any(_part_of(code, place, effect) for effect in effects)]
    else:
        # What the record itself has written may look like an anchor once more; its marker tells.
        found = [place for place in found if not _made_by(code, place, mark)]
        effects = [effect for effect in effects if not any(effect.nodes == place.nodes for place in found)]

    def anchor(place: Match) -> Anchor:
        def twin(node: ast.AST) -> bool:
            return any(node is effect.nodes[0] and _agree(place.bindings, effect.bindings) for effect in effects)

        return Anchor(place.nodes[0], lambda: _splices(code, place, wanted, template), twin)

    return Sites(tuple(anchor(place) for place in found), tuple(effect.nodes[0] for effect in effects))


def _agree(one: Bindings, two: Bindings) -> bool:
    """Whether what two matches bound by the same names is the same."""
    return all(same(value, two[name]) for name, value in one.items() if name in two)


def _made_by(code: Code, place: Match, mark: Mark) -> bool:
    first, last = code.line_of(code.start(place.nodes[0])), code.line_of(code.end(place.nodes[-1]))
    return any(mark.record in line_markers(code.line(number), mark.word) for number in range(first, last + 1))


def _bare(template: Pattern) -> bool:
    return isinstance(template.expression, ast.Name) and meta(template.expression.id) is not None


def _pair(wanted: Pattern, template: Pattern) -> bool:
    return wanted.argument is not None and template.argument is not None


def _pair_of_trees(general: Pattern, special: Pattern) -> bool:
    """Whether a template matches all that a pattern matches, so that a match says nothing about an edit."""
    if len(general.body) != len(special.body):
        return False
    bindings: Bindings = {}
    for one, two in zip(general.body, special.body, strict=True):
        result = match(one, two, bindings)
        if result is None:
            return False
        bindings = result
    return True


def _statement(code: Code, place: Match) -> Match | None:
    """The statement that a matched expression makes up by itself; a keyword argument stays as it is."""
    if not isinstance(place.nodes[0], ast.expr):
        return place
    parent = code.parents.get(place.nodes[0])
    return Match((parent,), place.bindings) if isinstance(parent, ast.Expr) else None


def _part_of(code: Code, place: Match, effect: Match) -> bool:
    """Whether a place lies in what an effect spells out, and not in what its metavariables bound."""
    start, end = code.start(place.nodes[0]), code.end(place.nodes[-1])
    if start < code.start(effect.nodes[0]) or end > code.end(effect.nodes[-1]):
        return False
    for bound in effect.bindings.values():
        if not isinstance(bound, str) and bound and code.start(bound[0]) <= start and end <= code.end(bound[-1]):
            return False
    return True


def _splices(code: Code, place: Match, wanted: Pattern, template: Pattern) -> list[Splice]:
    first = place.nodes[0]
    lines = fill(template, place.bindings, code)
    if lines and len(place.nodes) == len(wanted.body) == len(template.body):
        small = _reshaped(code, place, wanted, template)
        if small is not None:
            return small
    if isinstance(first, ast.keyword):
        call = code.parents[first]
        if not lines and isinstance(call, ast.Call):
            return taken_out(code, call, first)
        return [Splice(code.start(first), code.end(first), code.newline.join(lines))]
    if isinstance(first, ast.stmt):
        return replace_statements(code, [node for node in place.nodes if isinstance(node, ast.stmt)], lines)
    start, end = code.start(first), code.end(first)
    indent = code.indent(start)
    text = code.newline.join([lines[0], *(indent + line for line in lines[1:])])
    if template.expression is not None and loose(template.expression) and tight(code.parents.get(first), first):
        text = f"({text})"
    return [Splice(start, end, text)]


def _reshaped(code: Code, place: Match, wanted: Pattern, template: Pattern) -> list[Splice] | None:
    def text(node: ast.AST) -> str:
        return code.newline.join(fill(part(template, node), place.bindings, code))

    splices: list[Splice] = []
    for old, new, given in zip(wanted.body, template.body, place.nodes, strict=True):
        one: ast.AST = old
        two: ast.AST = new
        if isinstance(given, ast.keyword):
            if wanted.argument is None or template.argument is None:
                return None
            one, two = wanted.argument, template.argument
        elif not isinstance(given, ast.stmt) and isinstance(old, ast.Expr) and isinstance(new, ast.Expr):
            one, two = old.value, new.value
        inner = reshape(code, one, two, given, text)
        if inner is None:
            return None
        splices += inner
    return splices


def insert(code: Code, scopes: Sequence[Scope], edit: Insert) -> Sites:
    template = pattern(edit.code)
    effects = find(code, scopes, template)
    if edit.where in ("before", "after"):
        anchors = [
            Anchor(place.nodes[0], partial(_beside, code, place, edit, template), _never)
            for place in find(code, scopes, pattern(edit.anchor or ""))
            if not any(_near(code, place, effect) for effect in effects)
        ]
        return Sites(tuple(anchors), tuple(effect.nodes[0] for effect in effects))
    lines = fill(template, {}, code)
    if edit.where == "end" and isinstance(template.body[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        lines = ["", *lines]
    anchors = [
        Anchor(scope, partial(_inside, code, scope, edit, lines), _never)
        for scope in scopes
        if not any(scope is code.tree or scope in code.ancestors(effect.nodes[0]) for effect in effects)
    ]
    return Sites(tuple(anchors), tuple(effect.nodes[0] for effect in effects))


def _never(node: ast.AST) -> bool:  # noqa: ARG001
    return False


def _near(code: Code, place: Match, effect: Match) -> bool:
    block = code.siblings(_whole(code, place.nodes[0]))
    return any(code.statement(effect.nodes[0]) is statement for statement in block)


def _beside(code: Code, place: Match, edit: Insert, template: Pattern) -> list[Splice]:
    behind = edit.where == "after"
    statement = _whole(code, place.nodes[-1] if behind else place.nodes[0])
    return insert_statements(code, statement, fill(template, place.bindings, code), behind=behind)


def _whole(code: Code, node: ast.AST) -> ast.stmt:
    """The statement around a node that others can be put beside: of an `elif`, the whole `if`."""
    statement = code.statement(node)
    while _elif(code, statement):
        statement = code.statement(code.parents[statement])
    return statement


def _elif(code: Code, statement: ast.stmt) -> bool:
    parent = code.parents[statement]
    return (
        isinstance(statement, ast.If)
        and isinstance(parent, ast.If)
        and any(item is statement for item in parent.orelse)
        and code.text.startswith("elif", code.start(statement))
    )


def _inside(code: Code, scope: Scope, edit: Insert, lines: list[str]) -> list[Splice]:
    body = scope.body
    if edit.where == "end" and body:
        return insert_statements(code, body[-1], lines, behind=True)
    index = 1 if body and _docstring(body[0]) else 0
    while index < len(body) and _future(body[index]):
        index += 1
    following = body[index:]
    if edit.where == "prologue":
        following = [
            s for s in following if any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(s))
        ] or following
    if following:
        return insert_statements(code, following[0], lines, behind=False)
    if body:
        return insert_statements(code, body[-1], lines, behind=True)
    end = len(code.text)
    gap = "" if not code.text or code.text[-1] in "\r\n" else code.newline
    return [Splice(end, end, gap + code.newline.join(lines) + code.newline)]


def _docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
