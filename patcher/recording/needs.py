"""Which changes need which: one that imports a name of the tree's own comes after the one that brings it.

`from verl.utils.flags import log` in one file needs the change that defines `log` in verl/utils/flags.py, or adds this
file, or has the package's `__init__.py` pass the name on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from patcher.plan.own_imports import TreeLookup, bound, in_package, may_be_in, module_files, own_imports
from patcher.recording.grouping import Piece
from patcher.recording.hunks import Hunk
from patcher.recording.proof import with_hunks
from patcher.recording.proposal import Files

T = TypeVar("T", bound=Hashable)


def of_base(files: Files, root: Path, of_fork: TreeLookup) -> TreeLookup:
    """What the base's modules have: those that differ as they are there, all others as in the fork, in `root`."""
    added = files.after.keys() - files.base.keys()

    @cache
    def has(name: str) -> bool | None:
        inner = module_files(f"{name}.")
        if not added.isdisjoint((*module_files(name), *inner)):
            return False
        last = name.rpartition(".")[2]
        text = next((files.base[file] for file in module_files(name) if file in files.base), None)
        names = None if text is None else bound(text)
        # `from verl.utils import device`: a module of the package, which its __init__.py does not name.
        if not {last, "__getattr__"}.isdisjoint(names or ()) or any((root / file).is_file() for file in inner):
            return True
        if any(_brought(file, last, files) for file in files.after if in_package(file, name)):
            return False
        if text is None:
            return of_fork(name)
        return None if names is None or "*" in names else False

    return has


def in_fork(name: str, files: Files) -> bool:
    """Whether the fork has a name of its own, as far as the files that differ tell."""
    last = name.rpartition(".")[2]
    modules = [file for file in module_files(name) if file in files.after]
    inner = any(file in files.after for file in module_files(f"{name}."))
    passed_on = any(_brought(file, last, files) for file in files.after if in_package(file, name))
    return inner or passed_on or any(may_be_in(bound(files.after[file]), last) for file in modules)


def brings(piece: Piece, name: str, files: Files) -> bool:
    """Whether a change gives the tree a name of its own, `verl.utils.device.is_npu`."""
    if piece.file in module_files(f"{name}.") and piece.file not in files.base:
        return True
    last = name.rpartition(".")[2]
    passed_on = in_package(piece.file, name) and _brought(piece.file, last, files)
    if piece.file not in module_files(name) and not passed_on:
        return False
    names = _bound_with(files.before[piece.file], files.after[piece.file], piece.made.hunk)
    return last in (names or ()) or (not passed_on and may_be_in(names, last))


def _brought(file: str, name: str, files: Files) -> bool:
    """Whether the fork's file binds a name that the base's does not."""
    return name in (bound(files.after[file]) or ()) and name not in (bound(files.base.get(file, "")) or ())


@lru_cache(maxsize=4096)
def _bound_with(before: str, after: str, hunk: Hunk) -> frozenset[str] | None:
    """The names of a module with one change. Kept: each record that fails asks of each change of a module."""
    return bound(with_hunks(before, after, [hunk]))


def in_an_order(grouped: Sequence[Sequence[Piece]], files: Files, tree_has: TreeLookup) -> list[list[Piece]]:
    """The groups, with those taken apart that need each other, so that each can be made after those it needs.

    one     verl/a.py  def load(): ...                  two     verl/b.py  from verl.a import load
            verl/c.py  from verl.b import save                             def save(): ...

    gives three: the change of verl/a.py, those of verl/b.py, that of verl/c.py. What a group changes in one file stays
    together: an import is of no use without the code that uses it. Files that import from each other are one group.
    """
    parts = [part for group in grouped for part in _by_file(group)]
    group_of = [number for number, group in enumerate(grouped) for _ in _by_file(group)]
    needs = _needs(parts, files, tree_has)
    between: list[set[int]] = [set() for _ in grouped]
    for part, others in enumerate(needs):
        between[group_of[part]].update(group_of[other] for other in others)
    circles = Counter(reached := _reached(between))
    reached_by_part = _reached(needs)
    depths = _depths(needs, reached_by_part)
    made: dict[Hashable, list[Piece]] = defaultdict(list)
    for part, pieces in enumerate(parts):
        group, here = group_of[part], reached_by_part[part]
        if circles[reached[group]] == 1:
            key: Hashable = group
        elif reached_by_part.count(here) > 1:
            key = here
        else:
            key = (group, depths[here])
        made[key] += pieces
    return list(made.values())


def _by_file(group: Iterable[Piece]) -> list[list[Piece]]:
    found: dict[str, list[Piece]] = defaultdict(list)
    for piece in group:
        found[piece.file].append(piece)
    return list(found.values())


def _needs(parts: Sequence[Sequence[Piece]], files: Files, tree_has: TreeLookup) -> list[set[int]]:
    """Of each part those that bring a name which it imports, and which the base does not have."""
    bringing: dict[str, frozenset[int]] = {}
    found: list[set[int]] = []
    for number, part in enumerate(parts):
        names = {name for piece in part for name in _imported(piece, files) if tree_has(name) is False}
        for name in names - bringing.keys():
            bringing[name] = frozenset(
                other for other, some in enumerate(parts) if any(brings(piece, name, files) for piece in some)
            )
        found.append({other for name in names for other in bringing[name]} - {number})
    return found


def _imported(piece: Piece, files: Files) -> list[str]:
    begin, end = piece.made.hunk.new
    return own_imports(files.after[piece.file], range(begin + 1, end + 1)) if piece.file.endswith(".py") else []


def _reached(needs: Sequence[AbstractSet[int]]) -> list[frozenset[int]]:
    """All that each needs, at whatever remove, and itself. Those that need each other reach the same."""
    return [frozenset(reachable(one, needs.__getitem__)) for one in range(len(needs))]


def reachable(first: T, needed_by: Callable[[T], AbstractSet[T]]) -> set[T]:
    """What is needed by one, by what that needs, and so on; with itself."""
    seen, waiting = {first}, [first]
    while waiting:
        more = needed_by(waiting.pop()) - seen
        seen |= more
        waiting += more
    return seen


def _depths(needs: Sequence[AbstractSet[int]], reached: Sequence[frozenset[int]]) -> dict[frozenset[int], int]:
    """How many steps there are at most from what is reached down to something that needs nothing."""
    alike: dict[frozenset[int], list[int]] = defaultdict(list)
    for one, all_of_it in enumerate(reached):
        alike[all_of_it].append(one)
    found: dict[frozenset[int], int] = {}
    for all_of_it in sorted(alike, key=len):  # What something needs reaches less than it.
        below = {reached[other] for one in alike[all_of_it] for other in needs[one]} - {all_of_it}
        found[all_of_it] = 1 + max((found[one] for one in below), default=-1)
    return found
