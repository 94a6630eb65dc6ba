"""What is replaced or retired is kept, in a dated folder in the tree's root."""

from __future__ import annotations

import errno
import os
import stat
import time

from patcher.messages import Refusal, phrase
from patcher.worktree.host import disk, hashing, inside

ASIDE = inside.HOST + "/aside"
"""Second names of what is going to be replaced; the folder gets its date when that is certain."""


def dated(root: str) -> str:
    """The name of a dated folder that is not there yet. Raises Refusal where there can be none."""
    base = os.path.join(root, inside.KEPT)
    found = disk.status(base)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        cause = phrase("it must be a folder: what is replaced is kept there")
        advice = phrase("Remove it there, or give it another name.")
        raise Refusal("kept", phrase("{path}: cannot be used", path=inside.KEPT), cause, advice)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    name, count = stamp, 1
    while disk.status(os.path.join(base, name)) is not None:
        count += 1
        name = f"{stamp}-{count}"
    return inside.KEPT + "/" + name


def second_name(root: str, path: str) -> bool:
    """Have the file at `path` in the folder aside, too; False where only a rename can do so."""
    other = os.path.join(root, ASIDE, path)
    disk.make_folders(os.path.dirname(other))
    try:
        disk.second_name(os.path.join(root, path), other)
    except PermissionError:
        return False
    return True


def open_folder(root: str, kept: str) -> None:
    """Make the dated folder, with what has been laid by for it."""
    place, base = os.path.join(root, kept), os.path.join(root, inside.KEPT)
    disk.make_folders(base)
    if disk.status(os.path.join(base, ".gitignore")) is None:
        disk.create(os.path.join(base, ".gitignore"), b"*\n")
    aside = os.path.join(root, ASIDE)
    if disk.status(aside) is not None:
        try:
            disk.rename(aside, place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            for path in list(disk.files(aside)):
                disk.make_folders(os.path.dirname(os.path.join(place, path)))
                disk.move(os.path.join(aside, path), os.path.join(place, path))
    disk.make_folders(place)


def move(root: str, kept: str, path: str) -> bool:
    """Move what is at `path` into the dated folder, if it is not there yet. Whether it is there now."""
    place, target = os.path.join(root, path), os.path.join(root, kept, path)
    there, moved = disk.status(place), disk.status(target)
    if moved is not None:
        if there is not None and there.st_dev != moved.st_dev and _same(place, target):
            disk.remove(place)  # It was carried to another file system, and that was not the end of it.
        return True
    if there is None:
        return False
    disk.make_folders(os.path.dirname(target))
    disk.move(place, target)
    return True


def _same(one: str, other: str) -> bool:
    try:
        return hashing.digest(one).sha256 == hashing.digest(other).sha256
    except OSError:
        return False
