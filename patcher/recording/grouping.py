"""Which changes belong together: those of one purpose become one record. Purpose is guessed from what changes share.

verl/flags.py       adds `use_npu`                  one record: they share a name that no file had before
verl/engine.py      if use_npu: …
verl/actor.py       start(a, old=1), start(b, old=2)  ->  new=1, new=2      one record: the same edit, twice
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from patcher.plan.own_imports import module_files, own_imports
from patcher.recording.module_names import shared_names
from patcher.recording.proof import Made
from patcher.rewrite.edits import CreateFile, same_change
from patcher.rewrite.marker import split

_WORD = re.compile(r"[A-Za-z_]\w{3,}")
_MOST = 8
"""Changes that may share a new name. A guess: one that stands in more of them is a style and no purpose."""
_MOST_CHARACTERS = 100_000
"""Text of the fork that new names may bring together, some 2,000 lines. A guess: in a large fork some name links each
change with each other in the end, and a record of all of them cannot be read or turned off."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One change of one file, and the names that the fork brought in with it."""

    file: str
    made: Made
    names: frozenset[str]
    size: int
    """Characters of the lines that the fork has there."""
    shared: frozenset[str] = frozenset()
    """The names in it that its file has newly or no more, as `shared_names` finds them."""


Key = Callable[[Piece], Iterable[Hashable]]
"""What a change has in common with others that are to be joined with it."""


def pieces(made: Mapping[str, Sequence[Made]], before: Mapping[str, str], after: Mapping[str, str]) -> list[Piece]:
    """The changes with the names that no file had before.

    Of a file that was added, those that are imported between it and others: its other names, such as `main`, say
    nothing of what it is for.
    """
    old = {word for text in before.values() for word in _WORD.findall(_code(split(text)))}
    imported = _imported({file: after[file] for file in made}, {f for f, c in made.items() if any(map(_is_new, c))})
    found = []
    for file, changes in made.items():
        lines = split(after[file])
        shared = [frozenset[str]()] * len(changes)
        if len(changes) > 1 and file.endswith(".py"):
            shared = shared_names(before[file], after[file], [one.hunk for one in changes])
        for one, in_file in zip(changes, shared, strict=True):
            here = lines[slice(*one.hunk.new)]
            code = " ".join(imported.get(file, ())) if _is_new(one) else _code(here)
            names = frozenset(_WORD.findall(code)) - old
            found.append(Piece(file, one, names, sum(map(len, here)), in_file))
    return found


def _code(lines: Iterable[str]) -> str:
    """Lines without their comments."""
    return "\n".join(line.partition("#")[0] for line in lines)


def _is_new(one: Made) -> bool:
    return any(isinstance(edit, CreateFile) for edit in one.edits)


def _imported(texts: Mapping[str, str], new: AbstractSet[str]) -> dict[str, set[str]]:
    """Of each added file the names that others import from it, and that it imports from other added files."""
    names: dict[str, set[str]] = defaultdict(set)
    for file, text in texts.items():
        for name in own_imports(text, range(1, len(text.splitlines()) + 1)) if new and file.endswith(".py") else ():
            for other in _run_by(name) & new - {file}:
                for one in (other, file):
                    names[one].add(name.rpartition(".")[2])
    return names


def _run_by(name: str) -> set[str]:
    """The files that an import of a name runs: its module, and the `__init__.py` of each package that it is in."""
    parts = name.split(".")
    packages = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return {*module_files(name), *module_files(f"{name}."), *(f"{package}/__init__.py" for package in packages)}


def groups(found: Sequence[Piece]) -> list[list[Piece]]:
    """The changes of one purpose together, in the order of the first of each.

    Of one purpose are changes that bring in and use the same new name, as far as they stay readable, the same edit in
    several places, changes in one function, all changes of comments in one file, and those that have one order only.
    A name that is new in its file joins the changes of this file that use it whatever their size: `import sys`.
    """
    joins = _Joins(found)
    for key in (_functions, _kinds, _comments, _ties, _shared):
        joins.join_all(key)
    sizes: dict[int, int] = defaultdict(int)
    for index, piece in enumerate(found):
        sizes[joins.root(index)] += piece.size
    for same in sorted(_alike(found, lambda piece: piece.names), key=len):  # The rarest names tell most.
        roots = {joins.root(index) for index in same}
        if len(same) <= _MOST and (size := sum(sizes[one] for one in roots)) <= _MOST_CHARACTERS:
            joins.join(same)
            sizes[joins.root(same[0])] = size
    return joins.groups()


def inseparable(found: Sequence[Piece]) -> list[list[Piece]]:
    """The changes together of which one fails without another of its file, as a use does without its import."""
    joins = _Joins(found)
    joins.join_all(_shared)
    return joins.groups()


class _Joins:
    """Which changes are together so far."""

    def __init__(self, found: Sequence[Piece]) -> None:
        self._found = found
        self._above = list(range(len(found)))

    def root(self, index: int) -> int:
        """The first of the changes that one is together with."""
        while self._above[index] != index:
            index = self._above[index]
        return index

    def join(self, same: Iterable[int]) -> None:
        first, *others = sorted({self.root(index) for index in same})
        for other in others:
            self._above[other] = first

    def join_all(self, key: Key) -> None:
        """Join all that have something in common."""
        for same in _alike(self._found, key):
            self.join(same)

    def groups(self) -> list[list[Piece]]:
        """The changes that are together, in the order of the first of each."""
        made: dict[int, list[Piece]] = defaultdict(list)
        for index, piece in enumerate(self._found):
            made[self.root(index)].append(piece)
        return [made[index] for index in sorted(made)]


def _alike(found: Sequence[Piece], key: Key) -> list[list[int]]:
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


def _ties(piece: Piece) -> list[Hashable]:
    return [(piece.file, piece.made.tied)] if piece.made.tied is not None else []


def _shared(piece: Piece) -> list[Hashable]:
    return [(piece.file, name) for name in piece.shared]


def _kinds(piece: Piece) -> list[Hashable]:
    return [key for edit in piece.made.edits if (key := same_change(edit)) is not None]
