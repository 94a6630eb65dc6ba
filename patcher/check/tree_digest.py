"""One hash over everything in a tree that a check or a plan may read, to know that it has not changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from patcher.worktree import files, verl_tree
from patcher.worktree.layout import FOLDER

_MOST_ENTRIES = 50_000
"""Files and folders of a tree that are looked at. Checkouts of verl have 1,000 to 5,000; above this nothing is kept."""
_HASHED = (*verl_tree.TEXT, *verl_tree.SHELL, "version", "METADATA")
_PASSED_OVER = frozenset({".git", FOLDER, "__pycache__", "node_modules"})


def tree_digest(root: Path, further: Iterable[Path] = ()) -> str | None:
    """A hash of all sources, scripts and settings of a tree and of `further` folders and files beside it; None where
    there is too much in them."""
    found = hashlib.sha256()
    entries = 0
    for folder, folders, names in chain(os.walk(root), *map(_walk, further)):
        folders[:] = () if "pyvenv.cfg" in names else sorted(set(folders) - _PASSED_OVER)
        entries += len(folders) + len(names)
        if entries > _MOST_ENTRIES:
            return None
        for name in sorted(names):
            if name.endswith(_HASHED):
                place = f"{folder}/{name}"
                content = _link(place) if os.path.islink(place) else _content(place)  # noqa: PTH114  # Faster than a Path.
                found.update(f"{place}\0{len(content)}\0".encode(errors="surrogateescape"))
                found.update(content)
    return found.hexdigest()


def _walk(place: Path) -> Iterable[tuple[str, list[str], list[str]]]:
    """As `os.walk`, for a single file too."""
    return os.walk(place) if place.is_dir() else [(str(place.parent), [], [place.name])]


def _content(place: str) -> bytes:
    """What a check may read of a file: of one that is too large to be a source, nothing."""
    try:
        return files.read(place, verl_tree.MAX_BYTES)
    except OSError as error:
        return type(error).__name__.encode()


def _link(place: str) -> bytes:
    """Where it leads, and whether that has changed."""
    try:
        return f"{Path(place).readlink()} {Path(place).stat()[6:9]}".encode(errors="surrogateescape")
    except OSError as error:
        return type(error).__name__.encode()
