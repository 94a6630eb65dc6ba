"""Fill a template: each metavariable becomes the source text that it bound, comments included."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from patcher.rewrite.code import EOL, Code
from patcher.rewrite.pattern import PLACE, Pattern, meta
from patcher.rewrite.shape import shape
from patcher.worktree.python import UnreadableError, parse_expression

if TYPE_CHECKING:
    from patcher.rewrite.matching import Bindings, Bound

_ATOMS = (
    ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.Tuple,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.Starred, ast.keyword,
)  # fmt: skip
_TIGHT = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Attribute, ast.Await, ast.IfExp, ast.Starred, ast.Lambda,
)  # fmt: skip


def fill(template: Pattern, bindings: Bindings, code: Code) -> list[str]:
    """The template's lines, indented from zero."""
    lines: list[str] = []
    tight = _tight_places(template)
    start = 0
    for line in template.placed.split("\n"):
        lines += _fill_line(line, start, tight, bindings, code)
        start += len(line) + 1
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def loose(node: ast.AST) -> bool:
    """Whether an expression needs parentheses beside an operator."""
    return not isinstance(node, _ATOMS) or (isinstance(node, ast.Constant) and isinstance(node.value, (int, float)))


def tight(node: ast.AST | None, child: ast.AST) -> bool:
    """Whether what stands in the place of `child` below `node` must hold together by itself."""
    match node:
        case ast.Call(func=func):
            return func is child
        case ast.Subscript(value=value):
            return value is child
    return isinstance(node, _TIGHT)


def _tight_places(template: Pattern) -> frozenset[int]:
    """The offsets in the template at which a metavariable stands beside an operator."""
    starts = [0, *(match.end() for match in EOL.finditer(template.placed))]
    found: set[int] = set()
    for statement in template.body:
        for node in ast.walk(statement):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Name) and meta(child.id) and tight(node, child):
                    line = template.placed[starts[child.lineno - 1] :]
                    found.add(starts[child.lineno - 1] + len(line.encode()[: child.col_offset].decode()))
    return frozenset(found)


def _fill_line(line: str, start: int, tight: frozenset[int], bindings: Bindings, code: Code) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    alone = PLACE.fullmatch(line.strip())
    if alone and isinstance(bound := bindings.get(alone[2]), tuple) and all(isinstance(n, ast.stmt) for n in bound):
        return _statements(bound, indent, code)
    parts: list[str] = []
    done = 0
    for place in PLACE.finditer(line):
        bound = bindings.get(place[2])
        if bound is None:
            raise ValueError(f"${place[2]} is bound by nothing")
        parts.append(line[done : place.start()])
        done = place.end()
        text = _text(bound, indent, code, tight=start + place.start() in tight)
        if text == "":
            # An empty run takes a comma with it.
            comma = re.match(r"\s*,\s*", line[done:])
            if comma:
                done += comma.end()
            else:
                parts[-1] = re.sub(r",\s*$", "", parts[-1])
        parts.append(text)
    parts.append(line[done:])
    return EOL.split("".join(parts))


def _text(bound: Bound, indent: str, code: Code, *, tight: bool) -> str:
    """The source text of what was bound, its further lines moved to go with `indent`."""
    if isinstance(bound, str):
        return bound
    if not bound:
        return ""
    ordered = sorted(bound, key=code.start)
    pieces = _contiguous(ordered, code) or [(code.start(node), code.end(node)) for node in ordered]
    texts = []
    for first, last in pieces:
        text = moved(code.text[first:last], code.indent(first), indent)
        if len(bound) == 1 and ((tight and loose(bound[0])) or not _holds(text, bound[0])):
            text = f"({text})"
        texts.append(text)
    return ", ".join(texts)


def _contiguous(nodes: list[ast.AST], code: Code) -> list[tuple[int, int]] | None:
    """One span for items of a list that follow one another in it."""
    parent = code.parents.get(nodes[0])
    if parent is None:
        return None
    inside = sorted(
        (child for child in ast.iter_child_nodes(parent) if hasattr(child, "lineno")),
        key=lambda child: code.start(child),
    )
    first = bisect_right([code.start(child) for child in inside], code.start(nodes[0])) - 1
    if [id(child) for child in inside[first : first + len(nodes)]] != [id(node) for node in nodes]:
        return None
    return [(code.start(nodes[0]), code.end(nodes[-1]))]


def _holds(text: str, node: ast.AST) -> bool:
    """Whether an expression over several lines needs no parentheses around it."""
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred) or not EOL.search(text):
        return True
    try:
        parse_expression(text)
    except UnreadableError:
        return False
    return True


def moved(text: str, old: str, new: str) -> str:
    """A text over several lines, its lines from the second on moved from one indentation to another."""
    lines = EOL.split(text)
    if len(lines) == 1 or old == new:
        return "\n".join(lines)
    inside = shape(lines).inside
    for index, line in enumerate(lines[1:], 1):
        if not inside[index] and line.strip():
            rest = line[len(old) :] if line.startswith(old) else line.lstrip(" \t")
            lines[index] = new + rest
    return "\n".join(lines)


def _statements(bound: Bound, indent: str, code: Code) -> list[str]:
    """Statements at an indentation, with the comments above the first, between them and behind the last."""
    if not bound or isinstance(bound, str):
        return []
    start, end = code.start(bound[0]), code.end(bound[-1])
    if not code.own_line(start):
        return [indent + code.segment(statement) for statement in bound]
    old = code.indent(start)
    line = code.line_of(start)
    while line > 1 and code.line(line - 1).startswith(f"{old}#") and old:
        line -= 1
    rest = code.text[end : code.line_stop(code.line_of(end))]
    end += len(rest) if rest.strip(" \t;").startswith("#") else 0
    text = code.text[code.line_start(line) + len(old) : end]
    return EOL.split(indent + moved(text, old, indent))
