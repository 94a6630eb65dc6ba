"""Put statements in the place of others, or between them, in a block of libcst; also where several share a line.

`a; b; c` without `b` is `a; c`. A comment right above a statement stays with it when another is put before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst import CSTNode

from patcher.rewrite.sites import Splice
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import index_of, statements


def place(source: Source, node: CSTNode) -> tuple[CSTNode, int]:
    """The block that a statement stands in, and its number among the block's statements."""
    above = source.parents[id(node)]
    block = source.parents[id(above)] if isinstance(above, cst.SimpleStatementLine) else above
    return block, index_of((small for small, _ in statements(block)), node)


def lines_of(block: CSTNode, splice: Splice) -> tuple[int, int]:
    """The lines of `block.body` that a splice is about, the last one left out: at least one.

    A block holds lines and a splice counts statements: of `a; b` and `c`, the statements 1 to 3 are on lines 0 to 2.
    """
    lines = [index_of(block.body, line) for _, line in statements(block)]  # type: ignore[attr-defined]
    beside = min(splice.first - splice.behind, len(lines) - 1)
    touched = lines[splice.first : splice.last] or [lines[beside]]
    return touched[0], touched[-1] + 1


def spliced(block: CSTNode, splice: Splice) -> list[CSTNode]:
    """The lines that come in the place of `lines_of`."""
    top, bottom = lines_of(block, splice)
    old = block.body[top:bottom]  # type: ignore[attr-defined]
    inside = statements(block)
    before = [small for small, line in inside[: splice.first] if line is old[0]]
    behind = [small for small, line in inside[splice.last :] if line is old[-1]]
    new = list(splice.new)
    if splice.first == splice.last and not behind and (before or splice.behind):
        return [*old, *new]  # `a` or `a; b`, and something behind: lines of its own.
    if splice.first == splice.last and not before:
        head, kept = attached(old[0])  # Before `# why` and `a`: the comment stays with `a`.
        between, lead = _blank_and_rest(_lead(new[0]))
        return [_led(new[0], [*head, *lead]), *new[1:], _led(old[0], [*between, *kept])]
    if not before and not behind:
        return _instead(old, new) if new else []
    # The `b` of `a; b; c` is to go, or to become something else.
    return [*_shared(before, new, behind, old[0])]


def _instead(old: Sequence[CSTNode], new: list[CSTNode]) -> list[CSTNode]:
    """Lines for lines: what stands above the first stays, and so does the comment behind the last."""
    new[0] = _led(new[0], [*_lead(old[0]), *_lead(new[0])])
    tail = getattr(old[-1], "trailing_whitespace", None)
    new[-1] = _ended(new[-1], tail) if tail and tail.comment else new[-1]
    return new


def _ended(line: CSTNode, tail: cst.TrailingWhitespace) -> CSTNode:
    """A line with a comment behind it, or behind the last line in it, where none is there yet."""
    if isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return line if line.trailing_whitespace.comment else line.with_changes(trailing_whitespace=tail)
    if isinstance(line, cst.IndentedBlock):
        return line.with_changes(body=[*line.body[:-1], _ended(line.body[-1], tail)])
    for name in ("finalbody", "orelse", "handlers", "cases", "body"):
        last = getattr(line, name, None)
        if last:
            several = last.__class__ in (list, tuple)
            return line.with_changes(**{name: [*last[:-1], _ended(last[-1], tail)] if several else _ended(last, tail)})
    return line


def _lead(line: CSTNode) -> Sequence[cst.EmptyLine]:
    return line.leading_lines  # type: ignore[attr-defined,no-any-return]


def _blank_and_rest(lines: Sequence[cst.EmptyLine]) -> tuple[Sequence[cst.EmptyLine], Sequence[cst.EmptyLine]]:
    count = next((index for index, line in enumerate(lines) if line.comment), len(lines))
    return lines[:count], lines[count:]


def _led(line: CSTNode, lines: Sequence[cst.EmptyLine]) -> CSTNode:
    return line.with_changes(leading_lines=lines)


def attached(line: CSTNode) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """What stands above a statement: apart from it, and the comments right above it, which belong to it."""
    lines = list(_lead(line))
    cut = len(lines)
    while cut and lines[cut - 1].comment and lines[cut - 1].indent and not lines[cut - 1].whitespace.value:
        cut -= 1
    return lines[:cut], lines[cut:]


def _shared(before: Sequence[CSTNode], new: list[CSTNode], behind: Sequence[CSTNode], line: CSTNode) -> list[CSTNode]:
    """The statements of one line, on one line if that can be (`a; new; c`), else each part on its own.

    It cannot where something new is compound, or has a comment, which would hide what stands behind it.
    """
    if all(isinstance(one, cst.SimpleStatementLine) and not _commented(one) for one in new):
        middle = [small for one in new for small in one.body]  # type: ignore[attr-defined]
        return [line.with_changes(body=_joined([*before, *middle, *behind]))]
    lines = [*map(own_line, before), *new, *map(own_line, behind)]
    lines[0] = _led(lines[0], getattr(line, "leading_lines", ()))
    tail = getattr(line, "trailing_whitespace", None)
    if tail is not None and isinstance(lines[-1], cst.SimpleStatementLine):
        lines[-1] = lines[-1].with_changes(trailing_whitespace=tail)
    return lines


def own_line(small: CSTNode) -> CSTNode:
    """A statement that shared a line, on one of its own."""
    return cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])  # type: ignore[list-item]


def _commented(line: cst.SimpleStatementLine) -> bool:
    return line.trailing_whitespace.comment is not None or any(above.comment for above in line.leading_lines)


def _joined(smalls: Sequence[CSTNode]) -> list[CSTNode]:
    """Statements as they share a line: each but the last with a semicolon, which the last keeps if it had one."""
    semi = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        small if isinstance(small.semicolon, cst.Semicolon) and small.semicolon.whitespace_after.value  # type: ignore[attr-defined]
        else small.with_changes(semicolon=semi if index + 1 < len(smalls) else cst.MaybeSentinel.DEFAULT)
        for index, small in enumerate(smalls)
    ]  # fmt: skip


def suite(block: cst.SimpleStatementSuite, splice: Splice) -> cst.BaseSuite:
    """The same in `if x: a; b`, which becomes a block of its own where it must."""
    before, behind = block.body[: splice.first], block.body[splice.last :]
    line = cst.SimpleStatementLine(block.body, trailing_whitespace=block.trailing_whitespace)
    new = list(splice.new) or ([] if before or behind else [pass_()])
    lines = _shared(before, new, behind, line)
    if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine):
        return block.with_changes(body=lines[0].body)
    return cst.IndentedBlock(lines)  # type: ignore[arg-type]


def pass_() -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Pass()])


def emptied(block: CSTNode, count: int) -> bool:
    """Whether a block is left without statements where so many leave it."""
    return not isinstance(block, cst.Module) and len(statements(block)) == count
