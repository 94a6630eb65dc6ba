"""Which changes belong together: those of one purpose become one record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from patcher.recording.proof import Made
from patcher.recording.texts import split
from patcher.rewrite.edits import (
    AddArgument,
    Edit,
    Insert,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    ReplaceFunction,
    ReplaceLines,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    SetRequirement,
    SetValue,
)
from patcher.rewrite.words import name_of

_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_MOST = 8
"""Changes that may share a new name. A guess: one that stands in more of them is a style and no purpose."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One change of one file, and the names that the fork brought in with it."""

    file: str
    made: Made
    names: frozenset[str]


def pieces(made: Mapping[str, Sequence[Made]], before: Mapping[str, str], after: Mapping[str, str]) -> list[Piece]:
    """The changes with the names that no file had before."""
    old = {word for text in before.values() for word in _WORD.findall(text)}
    found = []
    for file, changes in made.items():
        lines = split(after[file])
        for one in changes:
            code = "\n".join(line.partition("#")[0] for line in lines[slice(*one.hunk.new)])
            found.append(Piece(file, one, frozenset(_WORD.findall(code)) - old))
    return found


def groups(found: Sequence[Piece]) -> list[list[Piece]]:
    """The changes of one purpose together, in the order of the first of each.

    Of one purpose are changes that bring in and use the same new name, the same edit in several places, changes in one
    function, and all changes of comments in one file.
    """
    above = list(range(len(found)))

    def root(index: int) -> int:
        while above[index] != index:
            index = above[index]
        return index

    def join(same: Iterable[int]) -> None:
        first, *others = sorted({root(index) for index in same})
        for other in others:
            above[other] = first

    for key in (_functions, _kinds, _comments):
        for same in _alike(found, key):
            join(same)
    for same in _alike(found, lambda piece: piece.names):
        if len(same) <= _MOST:
            join(same)
    made: dict[int, list[Piece]] = defaultdict(list)
    for index, piece in enumerate(found):
        made[root(index)].append(piece)
    return [made[index] for index in sorted(made)]


def _alike(found: Sequence[Piece], key: Callable[[Piece], Iterable[Hashable]]) -> list[list[int]]:
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for index, piece in enumerate(found):
        for one in key(piece):
            by_key[one].append(index)
    return [same for same in by_key.values() if len(same) > 1]


def _functions(piece: Piece) -> list[Hashable]:
    within = piece.made.within
    # Of a class, methods that were put in beside each other need not belong together.
    return [(piece.file, within)] if within is not None and not within.rpartition(".")[2][:1].isupper() else []


def _comments(piece: Piece) -> list[Hashable]:
    return [(piece.file, "comments")] if piece.made.comments_alone else []


def _kinds(piece: Piece) -> list[Hashable]:
    return [key for edit in piece.made.edits if (key := _kind(edit)) is not None]


def _kind(edit: Edit) -> Hashable | None:
    match edit:
        case MoveImport(old=old, new=new) | RenameAttribute(old=old, new=new):
            return ("move", old, new)
        case RenameArgument(call=call, old=old, new=new):
            return ("rename", call, old, new)
        case RemoveArgument(call=call, old=old):
            return ("remove", call, old)
        case AddArgument(call=call, new=new):
            return ("add", call, new)
        case Replace(pattern=pattern, replacement=replacement):
            return ("replace", pattern, replacement)
        case SetDefault(parameter=name, old=old, new=new):
            return ("default", name, old, new)
        case SetValue(key=key, old=old, new=new):
            return ("value", key, old, new)
        case SetRequirement(old=old, new=new):
            return ("requirement", name_of(new or old or ""))
        case SetDecorator(old=old, new=new) | SetBase(old=old, new=new) | SetParameter(old=old, new=new):
            return (type(edit).__name__, old, new)
        case Insert() | ReplaceLines() | ReplaceFunction() | SetEntry():
            return None
