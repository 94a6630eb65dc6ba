"""Remove the one thing that was listed, and nothing that is put in its place meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from typing import Sequence

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(path: str, identity: Sequence[int]) -> None:
    """Remove a file, or a folder with all in it, of this user, told by device and inode. No symlink is followed.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: something else is there, or it cannot be removed.
    """
    above = _open(os.path.dirname(path))
    try:
        name = os.path.basename(path)
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        if [found.st_dev, found.st_ino] != list(identity):
            raise OSError(errno.ESTALE, "another has taken its place", path)
        if found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "belongs to somebody else", path)
        if stat.S_ISDIR(found.st_mode):
            _remove_folder(name, above, found)
        else:
            os.unlink(name, dir_fd=above)
    finally:
        os.close(above)


def _open(path: str) -> int:
    """A folder by its absolute path, in which no part is a symlink."""
    fd = os.open("/", _FOLDER)
    for part in path.split("/"):
        if part:
            try:
                inner = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
    return fd


def _remove_folder(name: str, above: int, wanted: os.stat_result) -> None:
    fd = os.open(name, _FOLDER, dir_fd=above)
    try:
        found = os.fstat(fd)
        if not os.path.samestat(found, wanted):
            raise OSError(errno.ESTALE, "another has taken its place", name)
        for inner in os.listdir(fd):
            status = os.stat(inner, dir_fd=fd, follow_symlinks=False)
            if status.st_dev != found.st_dev:
                raise OSError(errno.EXDEV, "another file system is mounted there", inner)
            if stat.S_ISDIR(status.st_mode):
                _remove_folder(inner, fd, status)
            else:
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=above)
