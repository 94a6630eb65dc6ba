"""Whether a path stays inside the tree: one of a record, ledger or journal, or one that came over a connection.

Whoever sends a path may have judged it too; it is judged again on the machine where it is written to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import backup, disk
from patcher.worktree.os_errors import refused

FOLDER = ".uky-patch"
"""The folder in the tree's root that holds the ledger, the lock and the pre-images."""
HOST = FOLDER + "/host"
INCOMING = HOST + "/incoming"
PARTIAL = HOST + "/partial"
DIGESTS = HOST + "/digests.json"
_OURS_ALONE = frozenset(("host", "lock", "journal.json", "staged"))
_RESERVED = (FOLDER, ".git")


def parts(path: str) -> tuple[str, ...]:
    """The parts of a path that is relative, uses forward slashes and stays below where it starts.

    Raises:
        Refusal: any other path.
    """
    found = tuple(path.split("/"))
    if "\0" in path or "\\" in path:
        raise _not_inside(path, phrase("a path has forward slashes only, and no NUL"))
    if path.startswith("/") or (len(found[0]) == 2 and found[0][1] == ":"):
        raise _not_inside(path, phrase("a path is relative to the tree's root"))
    if any(part in ("", ".", "..") for part in found):
        raise _not_inside(path, phrase("a path has no empty part, no '.' and no '..'"))
    if not path.isprintable():
        raise _not_inside(path, phrase("a path has printable characters only"))
    return found


def resolve(root: Path, path: str) -> Path:
    """The real place of `path` below `root` (itself a real path), symlinks inside the tree followed.

    Raises:
        Refusal: the path is malformed, leads out of the tree, or into `.git` or the tool's own folder.
    """
    try:
        place = Path(os.path.realpath(root.joinpath(*parts(path))))
    except OSError as error:
        raise refused(error, phrase("{path}: cannot be looked up", path=path)) from error
    if root not in place.parents:
        raise _not_inside(path, phrase("a symlink leads out of the tree, to {place}", place=place))
    if any(part.lower() in _RESERVED for part in place.relative_to(root).parts):
        own, git = _RESERVED
        raise _not_inside(path, phrase("nothing is read or written there in {own} and {git}", own=own, git=git))
    return place


def _not_inside(path: str, cause: Message) -> Refusal:
    advice = phrase("Correct the path, or replace the symlink by what it points to.")
    return Refusal("path", phrase("{path}: no path inside the tree", path=ascii(path)), cause, advice)


def check(path: str) -> None:
    """Raise Refusal for a path that is not below the root, or lies where nothing is sent to."""
    found = path.split("/")
    if "\0" in path or not path or any(part in ("", ".", "..") for part in found):
        raise _outside(path, phrase("it is not below the tree's root"))
    names = [part.lower() for part in found]
    if ".git" in names or names[0] == backup.FOLDER:
        raise _outside(path, phrase("nothing is sent there"))
    if FOLDER in names and not (names[0] == FOLDER and len(found) > 1 and FOLDER not in names[1:]):
        raise _outside(path, phrase("nothing is sent there"))
    if names[0] == FOLDER and names[1] in _OURS_ALONE:
        raise _outside(path, phrase("nothing is sent there"))


def check_link(path: str, target: str) -> None:
    """Raise Refusal for a symlink that would lead out of the tree."""
    lands = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if not target or "\0" in target or target.startswith("/") or lands == ".." or lands.startswith("../"):
        raise _outside(path, phrase("it is a symlink to {target}", target=ascii(target)))


def _outside(path: str, cause: Message) -> Refusal:
    return Refusal("path", phrase("{path}: refused", path=ascii(path)), cause)


class PathGuard:
    """The folders of a tree as they are on this machine: what stands where a folder is to be."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: dict[str, tuple[bool, str]] = {"": (os.path.isdir(root), "")}

    def obstacle(self, path: str) -> str:
        """What is in the way of a file at `path`: the file or symlink that stands where a folder of its is to be.

        Empty where nothing is. Raises Refusal where a symlink leads out of the tree: it is never written through.
        """
        return self._folder(os.path.dirname(path))[1]

    def has_folder(self, path: str) -> bool:
        """Whether the folder of a file at `path` is there."""
        return self._folder(os.path.dirname(path))[0]

    def _folder(self, folder: str) -> tuple[bool, str]:
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = self._look(folder)
        return known

    def _look(self, folder: str) -> tuple[bool, str]:
        there, obstacle = self._folder(os.path.dirname(folder))
        if not there:
            return False, obstacle
        place = os.path.join(self.root, folder)
        found = disk.status(place)
        if found is None:
            return False, ""
        if stat.S_ISDIR(found.st_mode):
            return True, ""
        if stat.S_ISLNK(found.st_mode):
            real = os.path.realpath(place)
            if not real.startswith(self.root.rstrip("/") + "/"):
                cause = phrase("on the host it is a symlink to {target}, outside the tree", target=real)
                advice = phrase("Replace it by a folder there, or leave the folder's files out of git here.")
                raise Refusal("leads-out", phrase("{path}: not written through", path=folder), cause, advice)
        return False, folder
