"""From the untrusted path of a record, ledger or journal to a place inside the tree, or an error."""

from __future__ import annotations

import os
from pathlib import Path

from patcher.errors import TreeError
from patcher.i18n import Phrase, phrase
from patcher.tree.os_errors import tree_error

FOLDER = ".uky-patch"
"""The folder in the tree's root that holds the ledger, the lock and the pre-images."""

_RESERVED = (FOLDER, ".git")


def parts(path: str) -> tuple[str, ...]:
    """The parts of a path that is relative, uses forward slashes and stays below where it starts.

    Raises:
        TreeError: any other path.
    """
    found = tuple(path.split("/"))
    if "\0" in path or "\\" in path:
        raise _refused(path, phrase("a path has forward slashes only, and no NUL"))
    if path.startswith("/") or (len(found[0]) == 2 and found[0][1] == ":"):
        raise _refused(path, phrase("a path is relative to the tree's root"))
    if any(part in ("", ".", "..") for part in found):
        raise _refused(path, phrase("a path has no empty part, no '.' and no '..'"))
    if not path.isprintable():
        raise _refused(path, phrase("a path has printable characters only"))
    return found


def resolve(root: Path, path: str) -> Path:
    """The real place of `path` below `root` (itself a real path), symlinks inside the tree followed.

    Raises:
        TreeError: the path is malformed, leads out of the tree, or into `.git` or the tool's own folder.
    """
    try:
        place = Path(os.path.realpath(root.joinpath(*parts(path))))
    except OSError as error:
        raise tree_error(error, phrase("{path}: cannot be looked up", path=path)) from error
    if root not in place.parents:
        raise _refused(path, phrase("a symlink leads out of the tree, to {place}", place=place))
    if any(part.lower() in _RESERVED for part in place.relative_to(root).parts):
        own, git = _RESERVED
        raise _refused(path, phrase("nothing is read or written there in {own} and {git}", own=own, git=git))
    return place


def _refused(path: str, cause: Phrase) -> TreeError:
    return TreeError(
        phrase("{path}: no path inside the tree", path=ascii(path)),
        cause=cause,
        advice="Correct the path, or replace the symlink by what it points to.",
    )
