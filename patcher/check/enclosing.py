"""The project that a verl tree lies in, and what of it may be part of the tree's jobs.

A team keeps verl in a folder of its own repository, or as a submodule of it: `train.py` and `agents/` beside
`third_party/verl`, or `src/verl` below `scripts/`. That code runs with the tree and uses the same packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from patcher.git.head import repository
from patcher.homes import home
from patcher.worktree import files
from patcher.worktree.verl_tree import beside, holds_verl, package_of

_MOST_ABOVE = 4
"""Folders that a tree may lie below its project. `third_party/verl` is two below."""
_MOST_READ = 5000
"""Python files of a project that are read. One with more is a collection of many projects."""
_IMPORTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


class Enclosing(NamedTuple):
    """Paths begin with `above`, as they are seen from the tree's root: `../../scripts/train.py`."""

    folder: Path
    above: str
    """`../` for each folder that the tree lies below the project's."""
    python: tuple[str, ...]
    scripts: tuple[str, ...]


def enclosing(root: Path) -> Enclosing | None:
    """The project around the tree at `root`; None where there is none, or none of its files uses the tree's package.

    One with too many files to be read is given without any. Of its files count those of the folders, and the single
    files, that import the package, and of those that these import in turn.
    """
    folder = _project(root)
    if folder is None:
        return None
    above = "../" * len(root.relative_to(folder).parts)
    around = beside(folder)
    if len(around.python) > _MOST_READ:
        return Enclosing(folder, above, (), ())
    imports: dict[str, set[str]] = {}
    for file in around.python:
        imports.setdefault(_top(file), set()).update(_imported(folder / file))
    wanted: set[str] = set()
    waiting = [top for top, names in imports.items() if package_of(root) in names]
    while waiting:
        top = waiting.pop()
        if top not in wanted:
            wanted.add(top)
            waiting += imports[top] & imports.keys()
    if not wanted:
        return None
    python = tuple(above + file for file in around.python if _top(file) in wanted)
    return Enclosing(folder, above, python, tuple(above + script for script in around.scripts))


def checkout_of(root: Path) -> Path:
    """The folder of the repository that the tree is a part of, or a submodule of; without one the tree's own."""
    found = repository(root)
    return _project(root) or (found.top if found is not None and found.top != home() else root)


def places(around: Enclosing) -> tuple[Path, ...]:
    """The folders and single files that hold what a check reads of the project, its settings among them."""
    return tuple(around.folder / top for top in _tops(around, (*around.python, *around.scripts)))


def shown(around: Enclosing) -> str:
    """The folders and single files that are judged, as seen from the tree: `../agents, ../train.py`."""
    return ", ".join(around.above + top for top in _tops(around, around.python))


def _tops(around: Enclosing, paths: Iterable[str]) -> list[str]:
    return sorted({path.removeprefix(around.above).partition("/")[0] for path in paths})


def _project(root: Path) -> Path | None:
    """The folder of the repository that the tree is a part of, or a submodule of."""
    found = repository(root)
    if found is not None and found.top == root:
        # `.git/modules/verl` is where git keeps a submodule. A clone in a folder of a project is not part of it.
        found = repository(root.parent) if "modules" in found.folder.parts else None
    if found is None or found.top == home() or holds_verl(found.top):
        return None
    between = root.relative_to(found.top).parts
    hidden = any(part.startswith(".") for part in between)  # A cache, or an environment.
    return None if hidden or len(between) > _MOST_ABOVE else found.top


def _top(file: str) -> str:
    """`agents` of `agents/x/y.py`, `train` of `train.py`: the name under which a job in the project imports it."""
    return file.partition("/")[0].removesuffix(".py")


def _imported(file: Path) -> set[str]:
    try:
        content = files.read(file, files.SOURCE_BYTES)
    except OSError:
        return set()
    return {name.decode() for name in _IMPORTED.findall(content)}
