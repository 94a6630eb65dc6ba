"""A long file's statements of the top level, read one by one: what an edit or a pattern needs of it. For speed alone.

libcst takes 2 ms for 1 kB of Python. `fsdp_workers.py` has 93 kB, and `within = "RewardModelWorker._build_model"` is
4 of them. Whatever comes of it must be the same as if the whole file had been read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from patcher.rewrite.edits import (
    Edit,
    Insert,
    Replace,
    ReplaceFunction,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
)
from patcher.rewrite.outcome import EOL, AlreadyDone, Outcome, Rewritten
from patcher.worktree import python

_BY_THEMSELVES = (Replace, Insert, SetDefault, SetParameter, SetDecorator, SetBase, SetEntry, ReplaceFunction)
"""The other kinds of edit resolve names through the imports of the whole file."""
_LONG = 1 << 13
"""Characters. Set by hand: with 32 kB an `apply` of all records takes a twentieth longer, as files of 24 to 29 kB are
read whole that need not be; a text below this limit is read whole in some ten milliseconds."""
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Statements of a file from `start` to `end`, offsets in it: one with its decorators and the comments around it.

    `a; b` is one excerpt. A member of a class stands below the `head` of that class, so that it is read in its place:

        class RewardModelWorker(Worker):
            def _build_model(self, config):
    """

    start: int
    end: int
    text: str
    head: str = ""
    above: int = 0
    """Lines of the file before the statements."""
    above_head: int = 0
    """Lines of the file before the head."""
    defines: frozenset[str] = frozenset()
    """The names of its classes and functions, in blocks such as `try:` too."""
    words: frozenset[str] = frozenset()
    """Of its code, strings and comments."""
    members: Sequence[Excerpt] = ()
    """Of a class."""

    def line(self, number: int) -> int:
        """The line of the file that a line of the excerpt is."""
        inside = number - len(EOL.findall(self.head))
        return inside + self.above if inside > 0 else number + self.above_head

    def of_whole(self, source: str, outcome: Outcome) -> Outcome | None:
        """What an edit of the excerpt is for the whole file; None where only the whole file can tell."""
        if isinstance(outcome, AlreadyDone):
            return AlreadyDone(tuple(map(self.line, outcome.lines)), outcome.marked)
        if not isinstance(outcome, Rewritten) or not outcome.source.startswith(self.head):
            return None
        text = f"{source[: self.start]}{outcome.source[len(self.head) :]}{source[self.end :]}"
        return Rewritten(text, tuple(map(self.line, outcome.lines)), tuple(map(self.line, outcome.by_hand)))


def excerpt_for(source: str, edit: Edit) -> Excerpt | None:
    """The statement or member that an edit is about; None where it is most of the file, or not certain."""
    if len(source) < _LONG or not isinstance(edit, _BY_THEMSELVES) or edit.within is None:
        return None
    first, *more = edit.within.split(".")
    found = [one for one in excerpts(source) or () if first in one.defines]
    if len(found) == 1 and more:
        members = [one for one in found[0].members if more[0] in one.defines]
        found = members if len(members) == 1 else found
    return found[0] if len(found) == 1 and _worth_it(found, source) else None


def excerpts_with(source: str, words: frozenset[str]) -> Sequence[Excerpt] | None:
    """Where all of some words stand in one statement or member; None where that is most of the file, or not certain."""
    if len(source) < _LONG or (every := excerpts(source)) is None:
        return None
    found = [part for one in every if words <= one.words for part in _parts_with(one, words)]
    return found if _worth_it(found, source) else None


def _parts_with(one: Excerpt, words: frozenset[str]) -> Sequence[Excerpt]:
    if not one.members or words <= frozenset(_WORD.findall(one.members[0].head)):
        return [one]
    return [member for member in one.members if words <= member.words]


def forget() -> None:
    """Let go of the syntax of all texts."""
    excerpts.cache_clear()


def _worth_it(found: Iterable[Excerpt], source: str) -> bool:
    return sum(len(one.text) for one in found) * 2 <= len(source)


@lru_cache(maxsize=4)  # Several records ask about the same file, one after the other.
def excerpts(source: str) -> Sequence[Excerpt] | None:
    """All statements of the top level; None for what is no Python here, or has several kinds of newline."""
    newlines = [*EOL.finditer(source)]
    try:
        body = python.parse(source).body
    except python.UnreadableError:
        return None
    if len({newline.group() for newline in newlines}) > 1:
        return None
    starts = [0, *(newline.end() for newline in newlines)]
    found = []
    for group in _groups(body, starts, len(source)):
        node = group.nodes[0]
        members: list[Excerpt] = []
        if isinstance(node, ast.ClassDef):
            inner = _groups(node.body, starts, group.end)
            if _indent(source, inner[0].start) == node.body[0].col_offset:  # Not so in `class A: pass`.
                head = source[group.start : inner[0].start]
                members = [_excerpt(source, one, head, group.above) for one in inner]
        found.append(replace(_excerpt(source, group), members=members))
    return found


def _indent(source: str, start: int) -> int:
    return next((at for at in range(start, len(source)) if source[at] not in " \t"), start) - start


class _Group(NamedTuple):
    nodes: list[ast.stmt]
    above: int
    start: int
    end: int


def _groups(body: Sequence[ast.stmt], starts: Sequence[int], end: int) -> list[_Group]:
    """Statements that share a line, with the comments above and below them, which two groups have."""
    found: list[tuple[list[ast.stmt], int, int]] = []
    for node in body:
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])
        last = node.end_lineno or first
        if found and first <= found[-1][2]:
            before, begin, _ = found.pop()
            found.append(([*before, node], begin, last))
        else:
            found.append(([node], first, last))
    groups: list[_Group] = []
    for index, (nodes, first, _) in enumerate(found):
        above = found[index - 1][2] if index else first - 1
        below = starts[found[index + 1][1] - 1] if index + 1 < len(found) else end
        groups.append(_Group(nodes, above, starts[above], below))
    return groups


def _excerpt(source: str, group: _Group, head: str = "", above_head: int = 0) -> Excerpt:
    nodes, above, start, end = group
    inside = [below for node in nodes for below in ([node] if isinstance(node, _DEFINITIONS) else ast.walk(node))]
    defines = frozenset(node.name for node in inside if isinstance(node, _DEFINITIONS))
    text = source[start:end]
    return Excerpt(start, end, head + text, head, above, above_head, defines, frozenset(_WORD.findall(text)))
