"""A change of statements -> the edits that could be what its author did, the most specific first.

    start(port, old=1)  ->  start(port, new=1)          rename-argument; replace `old=1`; replace the whole statement
    from a import X     ->  from b import X             move-import; replace
    (nothing)           ->  check(port)                 insert before or after a neighbour, at the start, at the end

Whether an edit makes the change is not decided here: `patcher.recording.proof` tries each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import libcst as cst
from libcst import CSTNode

from patcher.recording.declared import edits_of_definition, edits_of_entries, plain_item, whole_function
from patcher.recording.hunks import Change
from patcher.rewrite import names
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
)
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import IMPORTS, SCOPES, equal, parts

_LONGEST_ANCHOR = 300
"""Characters of an anchor: a longer one holds more that the next release may change."""


def edits_for(file: str, base: Source, fork: Source, change: Change) -> Iterator[tuple[Edit, ...]]:
    """The ways to say a change, each as edits that are made one after the other."""
    old, new = change.old.items, change.new.items
    if old and new:
        yield from _moved_imports(file, old, new)
        if len(old) == len(new) == 1:
            yield from edits_of_definition(file, base, fork, old[0], new[0], change.within)
            yield from edits_of_entries(file, base, fork, old[0], new[0], change.within)
            yield from _inside(file, base, change, old[0], new[0])
        yield from _replaced(file, base, fork, change)
    elif new:
        yield from _inserted(file, base, fork, change)
    elif old:
        yield from _removed(file, base, change)


def code_of(source: Source, nodes: Sequence[CSTNode], *, bare: bool = False) -> str:
    """Statements as a record writes them: at the left margin, what is inside strings as it is.

    `bare`: without the comments above the first."""
    first, *others = nodes
    lead = [] if bare else [line for line in getattr(first, "leading_lines", ()) if line.comment]
    body = [first.with_changes(leading_lines=lead), *others]
    made = cst.Module(body=body, default_indent=source.module.default_indent)  # type: ignore[arg-type]
    return made.code.strip("\n")


# Imports


def _moved_imports(file: str, old: Sequence[CSTNode], new: Sequence[CSTNode]) -> Iterator[tuple[Edit, ...]]:
    """`from a import X` that became `from b import X`, one edit for each name."""
    before, after = dict(_imported(old)), dict(_imported(new))
    if not before or not after or before.keys() != after.keys():
        return
    moved = [(before[local], after[local]) for local in before if before[local] != after[local]]
    # An import that is split off goes below the other, so that their order in the fork decides.
    for pairs in (moved, moved[::-1]) if len(moved) > 1 else (moved,):
        if pairs:
            yield tuple(MoveImport(file=file, old=one, new=two) for one, two in pairs)


def _imported(statements: Iterable[CSTNode]) -> Iterator[tuple[str, str]]:
    """The local name and the full one of all that is imported; nothing if there is anything else."""
    found = []
    for line in statements:
        inner = line.body if isinstance(line, cst.SimpleStatementLine) else (line,)
        for node in inner:
            if not isinstance(node, IMPORTS) or (isinstance(node, cst.ImportFrom) and node.relative):
                return
            module = f"{names.module(node)}." if isinstance(node, cst.ImportFrom) else ""
            found += [(names.local(alias), f"{module}{names.imported(alias)}") for alias in names.aliases(node)]
    yield from found


# One statement in place of one


class _Pair(NamedTuple):
    """A part of the old statement, and the fork's in its place."""

    old: CSTNode
    new: CSTNode


def _inside(file: str, base: Source, change: Change, old: CSTNode, new: CSTNode) -> Iterator[tuple[Edit, ...]]:
    """Edits of the one part of a statement that differs: the smallest first."""
    pairs = [*_descent(old, new)]
    for pair in reversed(pairs):
        match pair.old, pair.new:
            case cst.Call() as one, cst.Call() as two:
                yield from _arguments(file, base, change, one, two)
            case cst.Attribute() as one, cst.Attribute() as two if one.attr.value != two.attr.value:
                tail = ".".join(names.dotted(one)[-2:])
                if one.value.deep_equals(two.value) and "." in tail:
                    yield (RenameAttribute(file=file, within=change.within, old=tail, new=two.attr.value),)
    for pair in reversed(pairs[1:]):
        if _says_enough(pair.old):
            texts = [base.code(plain_item(node)).strip() for node in pair]
            if "\n" not in texts[0] or isinstance(pair.old, (cst.Call, cst.Arg)):
                yield (Replace(file=file, within=change.within, pattern=texts[0], replacement=texts[1]),)


def _descent(old: CSTNode, new: CSTNode) -> Iterator[_Pair]:
    """The statement, then the part of it that all differences are in, and so on down."""
    pair: _Pair | None = _Pair(old, new)
    while pair is not None:
        yield pair
        pair = _differing(*pair)


def _differing(old: CSTNode, new: CSTNode) -> _Pair | None:
    """The one child that two nodes of a kind differ in; None where there are several, or none."""
    if type(old) is not type(new):
        return None
    found: list[_Pair] = []
    for name in parts(type(old)):
        one, two = getattr(old, name), getattr(new, name)
        if isinstance(one, CSTNode) and isinstance(two, CSTNode):
            if not equal(one, two):
                found.append(_Pair(one, two))
        elif isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
            if len(one) != len(two):
                return None
            found += [_Pair(a, b) for a, b in zip(one, two, strict=True) if not equal(a, b)]
        elif one != two:
            return None
    return found[0] if len(found) == 1 else None


def _says_enough(node: CSTNode) -> bool:
    """Whether a pattern of this node can mean one place: `port=1` can, a bare name or number cannot."""
    if isinstance(node, cst.Arg):
        return node.keyword is not None
    if isinstance(node, cst.SimpleString):
        return len(node.value) > 12
    return isinstance(node, (cst.Call, cst.Attribute, cst.Subscript, cst.Comparison, cst.BooleanOperation, cst.IfExp))


def _arguments(file: str, base: Source, change: Change, old: cst.Call, new: cst.Call) -> Iterator[tuple[Edit, ...]]:
    """Keyword arguments of one call that were renamed, taken out or added."""
    if not isinstance(old.func, (cst.Name, cst.Attribute)) or not equal(old.func, new.func):
        return
    before, after = _keywords(old), _keywords(new)
    rest = [[arg for arg in call.args if arg.keyword is None] for call in (old, new)]
    if len(rest[0]) != len(rest[1]) or not all(map(equal, *rest)):
        return
    gone = [name for name in before if name not in after]
    come = [name for name in after if name not in before]
    if any(not equal(before[name], after[name]) for name in before if name in after) or not (gone or come):
        return
    place: dict[str, Any] = {"file": file, "within": change.within, "call": called_name(old.func)}
    if len(gone) == len(come) == 1:
        same_value = equal(before[gone[0]], after[come[0]])
        value = None if same_value else base.code(after[come[0]]).strip()
        yield (RenameArgument(**place, old=gone[0], new=come[0], value=value),)
    taken = tuple(RemoveArgument(**place, old=name) for name in gone)
    added = tuple(AddArgument(**place, new=name, value=base.code(after[name]).strip()) for name in come)
    yield (*taken, *added)


def _keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    return {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}


def called_name(func: cst.BaseExpression) -> str:
    """The last two parts of what is called, or the name: `AsyncLLM.from_vllm_config`."""
    return ".".join(part for part in names.dotted(func)[-2:] if part.isidentifier() and part != "self")


# Statements in place of others


def _replaced(file: str, base: Source, fork: Source, change: Change) -> Iterator[tuple[Edit, ...]]:
    """Statements in place of others: `replace-function`, or `replace`, last with a neighbour that tells the place."""
    place: dict[str, Any] = {"file": file, "within": change.within}
    old, new = change.old.items, change.new.items
    if len(old) == len(new) == 1 and (headers := _headers(base, fork, old[0], new[0])) is not None:
        yield (Replace(**place, pattern=headers[0], replacement=headers[1]),)
    made = _without_shared_comments(fork, old, new)
    if len(old) == len(new) == 1 and (whole := whole_function(file, base, made, old[0], new[0])) is not None:
        yield (whole,)
    yield (Replace(**place, pattern=code_of(base, old, bare=True), replacement=made),)
    # The same statements stand there several times: with the one before or behind them, once.
    body, first, last = change.old.block.body, change.old.first, change.old.last
    if first > 0:
        before = code_of(base, body[first - 1 : first], bare=True)
        pattern = code_of(base, body[first - 1 : last], bare=True)
        yield (Replace(**place, pattern=pattern, replacement=f"{before}\n{made}"),)
    if last < len(body):
        behind = code_of(base, body[last : last + 1])
        pattern = code_of(base, body[first : last + 1], bare=True)
        yield (Replace(**place, pattern=pattern, replacement=f"{made}\n{behind}"),)


def _removed(file: str, base: Source, change: Change) -> Iterator[tuple[Edit, ...]]:
    """Statements that are gone, with a neighbour that stays: without it, nothing shows that they have gone by hand."""
    body, first, last = change.old.block.body, change.old.first, change.old.last
    for top, end in ((first - 1, last + 1), (first - 1, last), (first, last + 1)):
        if top >= 0 and end <= len(body):
            pattern = code_of(base, body[top:end], bare=True)
            left = code_of(base, [*body[top:first], *body[last:end]], bare=True)
            yield (Replace(file=file, within=change.within, pattern=pattern, replacement=left),)


def _without_shared_comments(fork: Source, old: Sequence[CSTNode], new: Sequence[CSTNode]) -> str:
    """The new statements; a comment that stood above the old ones stays there by itself."""
    first, *others = new
    lines = [line for line in getattr(first, "leading_lines", ()) if line.comment]
    above = [line.comment.value for line in getattr(old[0], "leading_lines", ()) if line.comment]
    if [line.comment.value for line in lines[: len(above)]] == above:
        lines = lines[len(above) :]
    return code_of(fork, [first.with_changes(leading_lines=lines), *others])


def _headers(base: Source, fork: Source, old: CSTNode, new: CSTNode) -> tuple[str, str] | None:
    """Of a class, function, loop or `with` whose body is the same: its header, with `$$$BODY` for the body."""
    if type(old) is not type(new) or not isinstance(old, (*SCOPES, cst.For, cst.While, cst.With, cst.If)):
        return None
    if not equal(old.body, new.body) or getattr(old, "orelse", None) or getattr(new, "orelse", None):  # type: ignore[attr-defined]
        return None
    return _skeleton(base, old, "BODY"), _skeleton(fork, new, "BODY")


# Statements between others


def _inserted(file: str, base: Source, fork: Source, change: Change) -> Iterator[tuple[Edit, ...]]:
    """Statements that are new as `insert`: beside a neighbour that stands there once, or at an end of the function."""
    place: dict[str, Any] = {"file": file, "within": change.within, "code": code_of(fork, change.new.items)}
    block, index = change.old.block, change.old.first
    above = base.parents.get(id(block))
    whole = isinstance(block, cst.Module) or isinstance(above, SCOPES)
    anchors = []
    if index > 0:
        anchors.append(("after", block.body[index - 1]))
    if index < len(block.body):
        anchors.append(("before", block.body[index]))
    # A short statement stays as it is longer than a whole loop does.
    for where, node in sorted(anchors, key=lambda one: isinstance(one[1], cst.BaseCompoundStatement)):
        for anchor in _anchors(base, node):
            if len(anchor) <= _LONGEST_ANCHOR:
                code = "\n" * _blank_lines(change, where, node) + place["code"]
                yield (Insert(**{**place, "code": code}, where=where, anchor=anchor),)  # type: ignore[arg-type]
    if change.within is not None and whole:
        if index <= 1:
            yield (Insert(**place, where="start"),)
        if index == len(block.body):
            yield (Insert(**place, where="end"),)
    # No neighbour stands there once: two of them together do.
    for first, last, where in ((index - 2, index, "after"), (index, index + 2, "before")):
        if first >= 0 and last <= len(block.body):
            anchor = code_of(base, block.body[first:last], bare=True)
            if len(anchor) <= 2 * _LONGEST_ANCHOR:
                yield (Insert(**place, where=where, anchor=anchor),)  # type: ignore[arg-type]


def _blank_lines(change: Change, where: str, anchor: CSTNode) -> int:
    """How many stand between new statements and the anchor, where one of the two is a definition."""
    items, body = change.new.items, change.new.block.body
    beside, below = (items[0], items[0]) if where == "after" else (items[-1], next(iter(body[change.new.last :]), None))
    if below is None or not any(isinstance(one, (cst.FunctionDef, cst.ClassDef)) for one in (beside, anchor)):
        return 0
    lines = getattr(below, "leading_lines", ())
    return next((count for count, line in enumerate(lines) if line.comment), len(lines))


def _anchors(base: Source, node: CSTNode) -> Iterator[str]:
    """Patterns for one statement: of a compound one what says where it is, and not what is in it."""
    if isinstance(node, cst.FunctionDef):
        start = "async def" if node.asynchronous else "def"
        yield f"{start} {node.name.value}($$$): $$$"
    elif isinstance(node, cst.BaseCompoundStatement):
        yield _skeleton(base, node)
    else:
        yield code_of(base, [node], bare=True)


class _Skeleton(cst.CSTTransformer):
    """Puts `__BODY__` into each block."""

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> bool:  # noqa: ARG002, N802
        return False

    def leave_IndentedBlock(  # noqa: N802
        self,
        original_node: cst.IndentedBlock,
        updated_node: cst.IndentedBlock,  # noqa: ARG002
    ) -> cst.BaseSuite:
        return _BODY if original_node.indent is None else _BODY.with_changes(indent=original_node.indent)


_BODY = cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(cst.Name("__BODY__"))])])


def _skeleton(code: Source, node: CSTNode, name: str = "") -> str:
    """A compound statement with `$$$` for each of its blocks: `if ready: $$$`, `else: $$$`."""
    made = node.visit(_Skeleton())
    assert isinstance(made, CSTNode)
    if isinstance(made, cst.ClassDef) and not name:
        made = made.with_changes(decorators=())
    return code_of(code, [made], bare=True).replace("__BODY__", f"$$${name}")
