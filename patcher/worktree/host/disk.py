"""Every call that changes a tree on this machine. Nothing here follows a symlink, and no file is written in place."""

from __future__ import annotations

import errno
import os
import stat
from typing import Iterator

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_PIECE = 1 << 20


def status(path: str) -> os.stat_result | None:
    """What is at `path` itself; None when nothing is."""
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def create(path: str, content: bytes, *, mode: int = 0o666, sync: bool = False) -> None:
    """Write a file anew; one that is there is replaced, not written into."""
    remove(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        write(fd, content)
        if sync:
            _sync(fd)
    finally:
        os.close(fd)


def append(path: str, offset: int, content: bytes) -> None:
    """Write `content` at `offset` of a file, which ends there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        os.ftruncate(fd, offset)
        os.lseek(fd, offset, os.SEEK_SET)
        write(fd, content)
    finally:
        os.close(fd)


def write(fd: int, content: bytes) -> None:
    """All of it."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def copy(source: str, target: str, mode: int) -> None:
    """A new file at `target` with the content of the regular file `source`, its times, and `mode`."""
    origin = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(origin)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", source)
        remove(target)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            piece = os.read(origin, _PIECE)
            while piece:
                write(fd, piece)
                piece = os.read(origin, _PIECE)
            os.fchmod(fd, mode)
        finally:
            os.close(fd)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(origin)


def symlink(target: str, path: str) -> None:
    """A symlink anew."""
    remove(path)
    os.symlink(target, path)


def second_name(path: str, other: str) -> None:
    """Give what is at `path` a second name, so that it outlives its replacement; a copy where links are refused."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        symlink(os.readlink(path), other)
        return
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        copy(path, other, stat.S_IMODE(found.st_mode))


def rename(path: str, target: str) -> None:
    """Rename, on one file system."""
    os.replace(path, target)


def move(path: str, target: str) -> None:
    """Rename; from one file system to another, a copy that is whole before it has its name."""
    try:
        os.replace(path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _carry(path, target)


def _carry(path: str, target: str) -> None:
    found = os.lstat(path)
    beside = os.path.join(os.path.dirname(target), ".uky-patch." + os.path.basename(target)[:200])
    if stat.S_ISLNK(found.st_mode):
        symlink(os.readlink(path), beside)
    else:
        copy(path, beside, stat.S_IMODE(found.st_mode))
    os.replace(beside, target)
    os.unlink(path)


def set_mode(path: str, mode: int) -> None:
    """Permission bits of a file of ours."""
    os.chmod(path, mode)


def give(path: str, user: int, group: int) -> None:
    """Have a file, or a link itself, belong to somebody."""
    os.chown(path, user, group, follow_symlinks=False)


def remove(path: str) -> None:
    """Remove a file or link; nothing to remove is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def make_folders(path: str, made: list[str] | None = None, *, mode: int = 0o777) -> None:
    """Make a folder and those above it, as far as they are missing; the new ones are added to `made`.

    `mode` is that of the last one.
    """
    if os.path.isdir(path):
        return
    make_folders(os.path.dirname(path), made)
    try:
        os.mkdir(path, mode)
        if made is not None:
            made.append(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def remove_folder(path: str) -> bool:
    """Remove a folder if it is empty. Whether it is gone."""
    try:
        os.rmdir(path)
    except OSError as error:
        return error.errno in _ABSENT
    return True


def remove_empty(path: str) -> bool:
    """Remove a folder in which there are only folders. Whether it is gone."""
    for entry in list(os.scandir(path)):
        if not entry.is_dir(follow_symlinks=False) or not remove_empty(entry.path):
            return False
    return remove_folder(path)


def remove_all(path: str) -> None:
    """Remove a folder of ours and all in it; symlinks are removed, not followed."""
    found = status(path)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        remove(path)
        return
    for name in os.listdir(path):
        remove_all(os.path.join(path, name))
    os.rmdir(path)


def files(folder: str, below: str = "") -> Iterator[str]:
    """What lies below a folder and is no folder, as paths below it with forward slashes; symlinks are not followed."""
    try:
        found = list(os.scandir(os.path.join(folder, below) if below else folder))
    except OSError as error:
        if error.errno in _ABSENT:
            return
        raise
    for entry in found:
        path = below + "/" + entry.name if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from files(folder, path)
        else:
            yield path


def folders(folder: str) -> list[str]:
    """The names of the folders in a folder, symlinks left out."""
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise


def reserve(path: str, size: int) -> None:
    """Take room on the disk, to be freed by removing the file."""
    remove(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        write(fd, b"\0" * size)
    finally:
        os.close(fd)


def _sync(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
