"""Whether a path stays inside the tree: a path of a record, ledger or journal, or one that came over a connection.

`resolve` is for paths of records and ledgers, `check` for those that a migration sends. They are judged on the machine
that is written to, also if the sender has judged them before.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.layout import FOLDER, HOST, JOURNAL, KEPT, LOCK, STAGED
from patcher.worktree.os_errors import refused

_NEVER_SENT = frozenset((HOST, LOCK, JOURNAL, STAGED))
"""What a migration may not send, though it may send the ledger and the pre-images."""
_RESERVED = (FOLDER, ".git")


def parts(path: str) -> tuple[str, ...]:
    """The parts of a relative path with forward slashes that has no `..`, as it is written: the disk is not asked.

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
    """The real path of `path` below `root`, which is a real path itself; symlinks inside the tree are followed.

    Raises:
        Refusal: the path is malformed, leads out of the tree, or into `.git` or `.uky-patch`.
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
    """Raise Refusal for a path that a migration may not send: not below the root, or in a folder of git or of ours."""
    found = path.split("/")
    if "\0" in path or not path or any(part in ("", ".", "..") for part in found):
        raise _outside(path, phrase("it is not below the tree's root"))
    names = [part.lower() for part in found]
    # The ledger and pre-images are sent as `.uky-patch/x`; `.uky-patch` itself, or one further down, is refused.
    own = names[0] == FOLDER and len(names) > 1
    if (
        ".git" in names
        or names[0] == KEPT
        or FOLDER in names[1 if own else 0 :]
        or (own and "/".join(names[:2]) in _NEVER_SENT)
    ):
        raise _outside(path, phrase("nothing is sent there"))


def check_link(path: str, target: str) -> None:
    """Raise Refusal if a symlink at `path` with this target would lead out of the tree."""
    lands = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if not target or "\0" in target or target.startswith("/") or lands == ".." or lands.startswith("../"):
        raise _outside(path, phrase("it is a symlink to {target}", target=ascii(target)))


def _outside(path: str, cause: Message) -> Refusal:
    return Refusal("path", phrase("{path}: refused", path=ascii(path)), cause)


class PathGuard:
    """Looks at a tree's folders on this machine, each of them once: is it there, or is something else in its place?"""

    def __init__(self, root: str) -> None:
        self.root = root
        self._known: dict[str, tuple[bool, str]] = {"": (os.path.isdir(root), "")}

    def obstacle(self, path: str) -> str:
        """The path of a file or symlink where `path` needs a folder; "" if there is none.

        For `verl/trainer/main.py` that is `verl/trainer` if it is a file. Raises Refusal for a symlink that leads out
        of the tree, as nothing is written through it.
        """
        return self._folder(os.path.dirname(path))[1]

    def has_folder(self, path: str) -> bool:
        """Whether the folder that `path` lies in exists, as a real folder."""
        return self._folder(os.path.dirname(path))[0]

    def _folder(self, folder: str) -> tuple[bool, str]:
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = self._look(folder)
        return known

    def _look(self, folder: str) -> tuple[bool, str]:
        """Whether the folder exists, and what is in its place or in that of one above it."""
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
