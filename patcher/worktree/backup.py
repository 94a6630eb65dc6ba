"""The folder `.uky-patch-kept` in a tree's root: copies of what was replaced or removed. Only the owner empties it.

`.uky-patch-kept/.gitignore`                             `*`
`.uky-patch-kept/verl__trainer.py.1a2b3c4d5e6f`          what a file held, by the first digits of its SHA-256
`.uky-patch-kept/ledger.json.1`                          what was in the place of a file of ours
`.uky-patch-kept/verl-0.7.0.1a2b3c4d5e6f/.uky-patch/`    the ledger and pre-images of another release
`.uky-patch-kept/2026-01-31T10-20-30Z/verl/trainer.py`   what a migration replaced or removed on a host
"""

from __future__ import annotations

import errno
import os
import stat
import time

from patcher.messages import Refusal, phrase
from patcher.worktree import disk, files, hashing
from patcher.worktree.layout import ASIDE, KEPT


def make_folder(root: str | os.PathLike[str]) -> str:
    """Make the folder, with a `.gitignore` for all in it, and return its path. Raises OSError."""
    folder = os.path.join(root, KEPT)
    disk.make_folder(folder)
    disk.hide_from_git(folder)
    return folder


def write(place: str | os.PathLike[str], content: bytes) -> None:
    """Write a copy in one step, and sync it. Raises OSError."""
    files.write_whole_file(place, content, draft=os.fspath(place) + ".part")


def keep_copy(root: str | os.PathLike[str], path: str, content: bytes) -> str:
    """Write `content`, which the file at `path` has now, to a file named after it and the content's digest.

    Returns that file's path below the root. Raises OSError.
    """
    name = path.replace("/", "__") + "." + hashing.digest_of(content)[:12]
    write(os.path.join(make_folder(root), name), content)
    return KEPT + "/" + name


def move_aside(root: str | os.PathLike[str], place: str | os.PathLike[str]) -> None:
    """Move whatever is at `place` into the folder, under its name and the next free number. Raises OSError."""
    folder, name, number = make_folder(root), os.path.basename(place), 1
    while disk.status(os.path.join(folder, f"{name}.{number}")) is not None:
        number += 1
    disk.replace(place, os.path.join(folder, f"{name}.{number}"))
    disk.sync(folder)


def dated(root: str) -> str:
    """The path, below the root, of a new folder named after the date and time. It is not made yet.

    Raises:
        Refusal: `.uky-patch-kept` is no folder.
    """
    base = os.path.join(root, KEPT)
    found = disk.status(base)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        cause = phrase("it must be a folder: what is replaced is kept there")
        advice = phrase("Remove it there, or give it another name.")
        raise Refusal("kept", phrase("{path}: cannot be used", path=KEPT), cause, advice)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    name, count = stamp, 1
    while disk.status(os.path.join(base, name)) is not None:
        count += 1
        name = f"{stamp}-{count}"
    return KEPT + "/" + name


def link_aside(root: str, path: str) -> bool:
    """Give the file at `path` a second name in the folder ASIDE, so that it survives its replacement.

    Returns False if this user may neither link nor read the file, but may rename it: for example somebody else's file
    of mode 0600 in this user's folder.
    """
    other = os.path.join(root, ASIDE, path)
    disk.make_folders(os.path.dirname(other))
    try:
        disk.link(os.path.join(root, path), other)
    except PermissionError:
        return False
    return True


def open_dated(root: str, kept: str) -> None:
    """Make the dated folder `kept`, and move into it what is in ASIDE. Can be repeated. Raises OSError."""
    make_folder(root)
    place, aside = os.path.join(root, kept), os.path.join(root, ASIDE)
    if disk.status(aside) is not None:
        try:
            disk.replace(aside, place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            for path in list(disk.files_below(aside)):
                disk.make_folders(os.path.dirname(os.path.join(place, path)))
                disk.move(os.path.join(aside, path), os.path.join(place, path))
    disk.make_folders(place)


def move(root: str, kept: str, path: str) -> bool:
    """Move what is at `path` into the dated folder `kept`, unless it is there already. Returns whether it is now."""
    place, target = os.path.join(root, path), os.path.join(root, kept, path)
    there, moved = disk.status(place), disk.status(target)
    if moved is not None:
        if there is not None and there.st_dev != moved.st_dev and _same(place, target):
            disk.remove(place)  # An interrupted move to another file system: the copy is whole, the original remains.
        return True
    if there is None:
        return False
    disk.make_folders(os.path.dirname(target))
    disk.move(place, target)
    return True


def _same(one: str, other: str) -> bool:
    """Whether two files have the same content."""
    try:
        return hashing.digest(one).sha256 == hashing.digest(other).sha256
    except OSError:
        return False
