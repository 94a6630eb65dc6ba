"""Which files of the tree are sent: git's own list, less what belongs to this machine alone. Tells what is left out."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.migrate import git
from patcher.migrate.model import Item, LeftOut, Listing
from patcher.profiles import NAMES
from patcher.profiles.agent.rendered import is_rendered
from patcher.profiles.model import Text
from patcher.worktree import files, hashing
from patcher.worktree.hashing import Digest

OWN = ".uky-patch"
HOST_OWN = frozenset(("git_ignore.py",))
"""Files in the tree's root that each host has its own of."""
RUN_SCRIPTS = frozenset(NAMES) - HOST_OWN
"""Files in the tree's root that are each host's own where they were rendered for one."""
MEASURING = 0.4
"""Seconds that are spent on sizes of what is left out."""
_HEAD = 4096


def listing(root: Path) -> Listing:
    """List and read the tree at `root`, which is a git checkout or a folder in one.

    Raises:
        TreeError: it is no checkout, git fails, or lists nothing.
    """
    top = Path(os.path.realpath(root))
    with git.Asked(top) as asked:
        sorting = _Sorting(top)
        for path in asked.paths():
            sorting.take(path)
        digests, failed = hashing.digests(str(top), sorting.files)
        state = asked.state()
    items = {path: _item(top, path, digest) for path, digest in digests.items()} | sorting.links
    if not items:
        raise TreeError(
            phrase("{root}: git lists no file here", root=root),
            cause="nothing is tracked in this folder, and what there is is ignored",
            advice="Name the root of the fork with --root. If an outer checkout ignores it, run git init in it.",
        )
    left_out = [*sorting.left_out, *(_unreadable(path, error) for path, error in failed.items())]
    left_out += _measured(top, state.ignored)
    return Listing(
        items=dict(sorted(items.items())),
        left_out=tuple(sorted(left_out, key=lambda left: (-(left.size or 0), left.path))),
        commit=state.commit,
        dirty=state.dirty,
    )


class _Sorting:
    """Tells the files and links of git's list from what is not sent."""

    def __init__(self, top: Path) -> None:
        self._top = str(top)
        self._plain: dict[str, bool] = {"": True}
        self.files: list[str] = []
        self.links: dict[str, Item] = {}
        self.left_out: list[LeftOut] = []

    def take(self, path: str) -> None:
        if path.endswith("/"):
            self._leave(path, phrase("a git repository of its own"))
            return
        place = os.path.join(self._top, path)
        if not self._is_plain(os.path.dirname(path)):
            return  # A folder was replaced by a symlink: to git its files are deleted.
        try:
            there = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.left_out.append(_unreadable(path, error))
            return
        if path in HOST_OWN or (path in RUN_SCRIPTS and _is_rendered(place)):
            self._leave(path, phrase("each host has its own"), there.st_size)
        elif any(part.startswith(OWN) for part in path.split("/")):
            self._leave(path, phrase("notes of uky-patch"), there.st_size)
        elif stat.S_ISDIR(there.st_mode):
            self._leave(path + "/", phrase("a git repository of its own"))
        elif stat.S_ISLNK(there.st_mode):
            self._take_link(path, os.readlink(place))
        elif stat.S_ISREG(there.st_mode):
            self.files.append(path)
        else:
            self._leave(path, phrase("neither a file nor a folder"))

    def _take_link(self, path: str, target: str) -> None:
        if target.startswith("/"):
            self._leave(path, phrase("a symlink with an absolute target: {target}", target=target))
        elif not self._lands_inside(path, target):
            self._leave(path, phrase("a symlink that leads out of the tree: {target}", target=target))
        else:
            size = len(os.fsencode(target))
            self.links[path] = Item(path, size, 0o777, hashing.of_link(target), link=target)

    def _lands_inside(self, path: str, target: str) -> bool:
        lexical = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if lexical == ".." or lexical.startswith("../"):
            return False
        real = os.path.realpath(os.path.join(self._top, path))
        return real == self._top or real.startswith(self._top.rstrip("/") + "/")

    def _is_plain(self, folder: str) -> bool:
        """Whether neither `folder` nor one above it, below the top, is a symlink."""
        known = self._plain.get(folder)
        if known is None:
            above = self._is_plain(os.path.dirname(folder))
            known = self._plain[folder] = above and not os.path.islink(os.path.join(self._top, folder))
        return known

    def _leave(self, path: str, reason: Text, size: int | None = None) -> None:
        self.left_out.append(LeftOut(path, reason, size))


def _item(top: Path, path: str, digest: Digest) -> Item:
    return Item(path, digest.size, digest.mode & 0o777, digest.sha256, source=top / path)


def _is_rendered(place: str) -> bool:
    try:
        with files.open_binary(place, follow=False) as file:
            return is_rendered(file.read(_HEAD).decode("utf-8", "surrogateescape"))
    except OSError:
        return False


def _unreadable(path: str, error: OSError) -> LeftOut:
    return LeftOut(path, phrase("cannot be read: {reason}", reason=error.strerror or str(error)))


def _measured(top: Path, ignored: tuple[str, ...]) -> Iterator[LeftOut]:
    """What git ignores, and its own folder. Folders of one name further down are told together."""
    deadline = time.monotonic() + MEASURING
    grouped: dict[str, list[str]] = {}
    for path in ignored:
        inner, name = os.path.split(path.rstrip("/"))
        if not (path.startswith(OWN) or path in HOST_OWN):
            grouped.setdefault(f"**/{name}/" if inner and path.endswith("/") else path, []).append(path)
    if (top / ".git").exists():
        yield LeftOut(".git", phrase("the history stays here"), _size(top / ".git", deadline))
    for path in HOST_OWN:
        if path in ignored:
            yield LeftOut(path, phrase("each host has its own"), _size(top / path, deadline))
    for name, paths in sorted(grouped.items(), key=lambda group: (group[0].startswith("**"), group[0])):
        sizes = [_size(top / path, deadline) for path in paths]
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        if len(paths) == 1:
            yield LeftOut(paths[0], phrase("git ignores it"), total)
        else:
            yield LeftOut(name, phrase("git ignores it, in {count} {count:place|places}", count=len(paths)), total)


def _size(path: Path, deadline: float) -> int | None:
    """Bytes of a file, or of all that is in a folder; None where time ran out or it cannot be read."""
    total, folders = 0, [str(path)]
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return os.lstat(path).st_size
        while folders:
            if time.monotonic() > deadline:
                return None
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None
    return total
