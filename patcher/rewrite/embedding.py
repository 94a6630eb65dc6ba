"""Put statements in the place of others, or between them, also where several share a line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patcher.rewrite.marking import Splice
from patcher.rewrite.shape import shape
from patcher.worktree.python import UnreadableError, parse

if TYPE_CHECKING:
    from patcher.rewrite.code import Code

_COMPOUND = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


def own_lines(code: Code, statements: Sequence[ast.stmt]) -> bool:
    """Whether nothing but a comment shares the lines of statements that follow one another."""
    return code.own_line(code.start(statements[0])) and _ends_line(code, statements[-1])


def _ends_line(code: Code, statement: ast.stmt) -> bool:
    end = code.end(statement)
    rest = code.text[end : code.line_stop(code.line_of(end))].lstrip(" \t\f;")
    return not rest or rest.startswith("#")


def replace_statements(code: Code, old: Sequence[ast.stmt], lines: Sequence[str]) -> list[Splice]:
    """Put `lines`, indented from zero, in the place of statements of one block; none at all takes them out."""
    block = code.siblings(old[0])
    if not lines and len(block) == len(old) and not (isinstance(code.parents[old[0]], ast.Module)):
        lines = ["pass"]
    start, end = code.start(old[0]), code.end(old[-1])
    if own_lines(code, old):
        if lines:
            stop = code.line_stop(code.line_of(end))
            comment = code.text[end:stop].strip(" \t\f;")
            if comment and lines[-1].endswith(comment):
                end = stop
            return [Splice(start, end, indented(lines, code.indent(start), code.newline).lstrip(" \t"))]
        return [Splice(code.line_start(code.line_of(start)), code.line_start(code.line_of(end) + 1), "")]
    first = next(index for index, statement in enumerate(block) if statement is old[0])
    return _share(code, block, first, first + len(old), lines)


def insert_statements(code: Code, beside: ast.stmt, lines: Sequence[str], *, behind: bool) -> list[Splice]:
    """Put `lines` before or behind a statement; a comment block right above a statement stays with it."""
    if behind and own_line_behind(code, beside):
        stop = code.line_stop(code.line_of(code.end(beside)))
        return [Splice(stop, stop, code.newline + indented(lines, code.indent(code.start(beside)), code.newline))]
    if not behind and code.own_line(code.start(beside)):
        at = code.line_start(attached(code, code.line_of(code.start(beside))))
        return [Splice(at, at, indented(lines, code.indent(code.start(beside)), code.newline) + code.newline)]
    block = code.siblings(beside)
    index = next(index for index, statement in enumerate(block) if statement is beside) + behind
    return _share(code, block, index, index, lines)


def own_line_behind(code: Code, statement: ast.stmt) -> bool:
    """Whether a line put behind a statement belongs to the same block."""
    if not _ends_line(code, statement):
        return False
    block = code.siblings(statement)
    last = statement
    while not code.own_line(code.start(last)):
        above = [other for other in block if code.start(other) < code.start(last)]
        if not above:
            return False
        last = above[-1]
    return True


def attached(code: Code, line: int) -> int:
    """The first line of the comment block right above a line, at the same indentation, or the line itself."""
    indent = code.indent(code.line_start(line))
    top = line
    while top > 1 and code.line(top - 1).startswith(f"{indent}#"):
        top -= 1
    # What the file begins with is its header, and belongs to no statement.
    return line if top == 1 else top


def indented(lines: Sequence[str], indent: str, newline: str) -> str:
    """The lines joined at an indentation; what stands inside strings stays as it is."""
    inside = shape(lines).inside if lines else ()
    return newline.join(
        line if within or not line.strip() else indent + line for line, within in zip(lines, inside, strict=True)
    )


def _share(code: Code, block: list[ast.stmt], first: int, last: int, lines: Sequence[str]) -> list[Splice]:
    """Put `lines` in the place of `block[first:last]` where statements share a line."""
    beside = block[first] if first < len(block) else block[-1]
    line = code.line_of(code.start(beside))
    group = [s for s in block if code.line_of(code.start(s)) <= line <= code.line_of(code.end(s))]
    low, high = block.index(group[0]), block.index(group[-1]) + 1
    low, high = min(low, first), max(high, last)
    try:
        simple = not any(isinstance(node, _COMPOUND) for node in parse("\n".join(lines)).body)
    except UnreadableError:
        simple = False
    simple = simple and not any(column is not None for column in (shape(lines).comments if lines else ()))
    logical = sorted(set(shape(lines).logical)) if lines else []
    pieces = [code.segment(statement) for statement in block[low:first]]
    tail = [code.segment(statement) for statement in block[last:high]]
    start, end = code.start(block[low]), code.end(block[high - 1])
    if simple:
        own = ["\n".join(lines[top : bottom + 1]).strip() for top, bottom in logical]
        text = "; ".join(piece for piece in [*pieces, *own, *tail] if piece)
        return [Splice(start, end, text.replace("\n", code.newline))]
    rest = code.text[end : code.line_stop(code.line_of(end))]
    end += len(rest) - len(rest.lstrip(" \t;"))
    indent = code.indent(start)
    suite = not code.own_line(start)
    if suite:
        indent += "\t" if "\t" in indent else "    "
        start = len(code.text[:start].rstrip(" \t"))
    body = [indent + piece for piece in pieces], [indent + piece for piece in tail]
    text = code.newline.join([*body[0], indented(lines, indent, code.newline), *body[1]])
    return [Splice(start, end, code.newline + text if suite else text.removeprefix(indent))]
