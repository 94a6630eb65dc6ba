"""Whether a path that came over the connection stays inside the tree: judged again where it is written to."""

from __future__ import annotations

import os
import stat

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import backup, disk

OWN = ".uky-patch"
HOST = ".uky-patch/host"
INCOMING = HOST + "/incoming"
PARTIAL = HOST + "/partial"
_OURS_ALONE = frozenset(("host", "lock", "journal.json", "staged"))


def check(path: str) -> None:
    """Raise Refusal for a path that is not below the root, or lies where nothing is sent to."""
    parts = path.split("/")
    if "\0" in path or not path or any(part in ("", ".", "..") for part in parts):
        raise _outside(path, phrase("it is not below the tree's root"))
    names = [part.lower() for part in parts]
    if ".git" in names or names[0] == backup.FOLDER:
        raise _outside(path, phrase("nothing is sent there"))
    if OWN in names and not (names[0] == OWN and len(parts) > 1 and OWN not in names[1:]):
        raise _outside(path, phrase("nothing is sent there"))
    if names[0] == OWN and names[1] in _OURS_ALONE:
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
