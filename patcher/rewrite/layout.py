"""A fork that black or ruff laid out anew, as if it had kept the base's layout: what is left is what it changed.

    base                                  fork                                  what is compared with the base
    os.environ['NCCL_DEBUG'] = 'WARN'     os.environ["NCCL_DEBUG"] = "WARN"     os.environ['NCCL_DEBUG'] = 'WARN'
    start(port, timeout=600)              start(                                start(
                                              port,                                 port,
                                              timeout=900,                          timeout=900,
                                          )                                     )

A statement that says the same, with the same comments, gets the base's lines. Where both sides have a block of the same
header, such as a function's, this goes on inside it.
"""

from __future__ import annotations

import ast
import copy
import io
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from patcher.rewrite.marker import marker_pattern, split, without_markers
from patcher.rewrite.texts import same, tree_of
from patcher.worktree import python

_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Relaid:
    """A fork's text in the base's layout. `places`: for each of its lines the fork's, both from 0."""

    text: str
    places: tuple[int, ...]

    @classmethod
    def unchanged(cls, text: str) -> Relaid:
        return cls(text, tuple(range(len(split(text)))))


def relaid(base: str, fork: str, *, but: str = "") -> Relaid:
    """The fork's text with the base's lines for each statement that says the same; as it is where one is no Python.

    `but`: the word of markers, which then count as layout: `run(a)  # Uky[fork-run]` says the same as `run(a)`.
    """
    try:
        old, new = _Text(base, but), _Text(fork, but)
        found = list(_statements(old, new, old.tree.body, new.tree.body))
    except (python.UnreadableError, tokenize.TokenError, RecursionError, IndentationError):
        return Relaid.unchanged(fork)
    lines: list[str] = []
    places: list[int] = []
    at = 0
    for ours, theirs in found:
        lines += new.lines[at : theirs.start]
        places += range(at, theirs.start)
        lines += old.lines[ours.start : ours.stop]
        last = len(theirs) - 1
        places += [theirs.start + min(line, last) for line in range(len(ours))]
        at = theirs.stop
    lines += new.lines[at:]
    places += range(at, len(new.lines))
    text = "\n".join(lines) + ("\n" if fork.endswith("\n") else "")
    # A text that would say something else is not taken, whatever the statements were.
    one, two = (without_markers(part, but) if but else part for part in (text, fork))
    return Relaid(text, tuple(places)) if same(one, two, ".py") else Relaid.unchanged(fork)


class _Text:
    """A text of Python with its syntax tree and its comments by line, counted from 0; without markers of the word
    `but`."""

    def __init__(self, text: str, but: str) -> None:
        left_out = marker_pattern(but) if but else None
        self.lines = split(text)
        self.tree = tree_of(text)
        self._comments: dict[int, str] = {}
        self.shared: set[int] = set()
        """Lines with more than one statement: `a; b`."""
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                if left_out is not None and left_out.search(token.string):
                    continue
                self._comments[token.start[0] - 1] = token.string.rstrip()
            elif token.string == ";":
                self.shared.add(token.start[0] - 1)

    def comments(self, lines: range) -> list[str]:
        return [self._comments[line] for line in lines if line in self._comments]

    def of(self, statement: ast.stmt) -> range:
        """A statement's lines, from its first decorator on."""
        decorators = getattr(statement, "decorator_list", ())
        return range(min(one.lineno for one in (*decorators, statement)) - 1, statement.end_lineno or statement.lineno)

    def header(self, statement: ast.stmt) -> range:
        """The lines before its block, without the comments above the block's first statement."""
        lines = self.of(statement)
        stop = self.of(statement.body[0]).start  # type: ignore[attr-defined]
        while stop > lines.start + 1 and (not self.lines[stop - 1].strip() or self.lines[stop - 1].lstrip()[:1] == "#"):
            stop -= 1
        return range(lines.start, stop)


def _statements(
    old: _Text, new: _Text, before: Sequence[ast.stmt], after: Sequence[ast.stmt]
) -> Iterator[tuple[range, range]]:
    """Lines of the base, and those of the fork that say the same, in order."""
    if not before or not after or before[0].col_offset != after[0].col_offset:
        return
    dumps = [ast.dump(one) for one in before], [ast.dump(one) for one in after]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *dumps, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from _equal(old, new, before[i1:i2], after[j1:j2])
        elif tag == "replace":
            for one, two in _paired(before[i1:i2], after[j1:j2]):
                yield from _inside(old, new, one, two)


def _equal(
    old: _Text, new: _Text, before: Sequence[ast.stmt], after: Sequence[ast.stmt]
) -> Iterator[tuple[range, range]]:
    """Of statements that are equal one by one: all in one, with the blank lines between them, or each by itself."""
    ours, theirs = (
        range(text.of(some[0]).start, text.of(some[-1]).stop) for text, some in ((old, before), (new, after))
    )
    shared = {ours.start, ours.stop - 1} & old.shared or {theirs.start, theirs.stop - 1} & new.shared
    if not shared and old.comments(ours) == new.comments(theirs):
        yield ours, theirs
    elif len(before) > 1:
        for one, two in zip(before, after, strict=True):
            yield from _equal(old, new, [one], [two])
    else:
        yield from _inside(old, new, before[0], after[0])


def _paired(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Compound statements that may be one and the same: those of one header, and between these any, in their order."""
    old, new = ([one for one in some if isinstance(getattr(one, "body", None), list)] for some in (before, after))
    keys = list(map(_key, old)), list(map(_key, new))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            yield from zip(old[i1:i2], new[j1:j2], strict=False)


def _key(statement: ast.stmt) -> str:
    """What tells a compound statement from others: the name of a function or class, all of any other header."""
    name = getattr(statement, "name", None)
    return f"{type(statement).__name__} {name}" if isinstance(name, str) else _without_blocks(statement)


def _without_blocks(node: ast.AST) -> str:
    shell = copy.copy(node)
    for name in _BLOCKS:
        if hasattr(shell, name):
            setattr(shell, name, [])
    return ast.dump(shell)


def _inside(old: _Text, new: _Text, one: ast.stmt, two: ast.stmt) -> Iterator[tuple[range, range]]:
    """The same in two statements of one kind that differ: the header, and each block."""
    if type(one) is not type(two) or not isinstance(getattr(one, "body", None), list):
        return
    if any(text.of(node.body[0]).start <= text.of(node).start for text, node in ((old, one), (new, two))):  # type: ignore[attr-defined]
        return  # `if a: b` in one line.
    ours, theirs = old.header(one), new.header(two)
    if _without_blocks(one) == _without_blocks(two) and old.comments(ours) == new.comments(theirs):
        yield ours, theirs
    for name in _BLOCKS:
        below, other = getattr(one, name, None) or [], getattr(two, name, None) or []
        if all(isinstance(node, ast.stmt) for node in (*below, *other)):
            yield from _statements(old, new, below, other)
        elif len(below) == len(other):
            for first, second in zip(below, other, strict=True):  # The handlers of a `try`, the cases of a `match`.
                if _without_blocks(first) == _without_blocks(second):
                    yield from _statements(old, new, first.body, second.body)
