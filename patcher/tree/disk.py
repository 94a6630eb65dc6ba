"""Every call that changes the disk, and the guarded ones that read it.

The rest of the package touches files through this module alone, which leaves guarded opening and locking to
`patcher.worktree`; so a test that swaps the `os` of these modules sees, counts and fails every operation.
"""
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH116, PTH208

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from patcher.worktree import files, locks
from patcher.worktree.files import IrregularFileError

__all__ = ["IrregularFileError"]

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


def real(path: Path) -> Path:
    """`path` with every symlink followed; the last parts need not exist."""
    return Path(os.path.realpath(path))


def status(path: Path) -> os.stat_result | None:
    """What is at `path` itself, a symlink not followed; None when nothing is."""
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def read(path: Path, most: int = files.SOURCE_BYTES) -> tuple[bytes, os.stat_result]:
    """A regular file's bytes and status.

    Raises:
        OSError: also when `path` is a symlink or no regular file, or holds more than `most` bytes.
    """
    return files.read_and_status(path, most)


def create(path: Path, content: bytes, *, like: os.stat_result | None = None) -> None:
    """Write a file that must not exist yet, with the mode and owner of `like`. Not synced.

    Without `like`, a file that root makes belongs to the folder's owner.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if like is None else 0o600)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        if like is None:
            _inherit_owner(path)
        else:
            _take_after(fd, like)
    finally:
        os.close(fd)


def _take_after(fd: int, like: os.stat_result) -> None:
    mode = stat.S_IMODE(like.st_mode)
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(fd, like.st_uid, like.st_gid)
        except PermissionError:
            mode &= 0o777
            with contextlib.suppress(PermissionError):
                os.fchown(fd, -1, like.st_gid)
    os.fchmod(fd, mode)


def _inherit_owner(path: Path) -> None:
    if os.geteuid() == 0:
        parent = os.stat(path.parent)
        if parent.st_uid or parent.st_gid:
            with contextlib.suppress(PermissionError):  # Root is nobody on many network file systems.
                os.chown(path, parent.st_uid, parent.st_gid, follow_symlinks=False)


def copy_attributes(source: Path, target: Path) -> None:
    """Copy extended attributes, access lists among them, where the file system and the user's rights allow it."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(source, follow_symlinks=False):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False), follow_symlinks=False)


def keep(path: Path, second_name: Path) -> None:
    """Give the file at `path` a second name, so that it outlives its replacement; a copy where links are refused."""
    try:
        os.link(path, second_name, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        content, found = read(path)
        create(second_name, content, like=found)
        sync(second_name)


def sync(path: Path) -> None:
    """Have a file's content, or a folder's entries, on the disk before going on."""
    fd = os.open(path, _READ)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(fd)


def replace(source: Path, target: Path) -> None:
    """Put `source` in the place of `target` in one step."""
    os.replace(source, target)


def remove(path: Path) -> None:
    """Remove a file; nothing to remove is fine."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_if_allowed(path: Path) -> None:
    """Remove a file that does no harm where it stays."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)


def make_folder(path: Path) -> None:
    """Make a folder; one that is there already is fine.

    Raises:
        NotADirectoryError: something else is there, also a symlink to a folder: what is put there would leave the tree.
    """
    try:
        os.mkdir(path)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(path)) from None
    else:
        _inherit_owner(path)


def remove_folder(path: Path) -> bool:
    """Remove a folder if it is empty; one that is not is left as it is. Whether there is none now."""
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        if error.errno not in _ABSENT:
            raise
    return True


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none when it does not exist, or is a symlink to one."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (*_ABSENT, errno.ELOOP):
            return []
        raise
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def free_bytes(folder: Path) -> int | None:
    """Bytes that this user may still write below `folder`; None where the file system does not say."""
    found = os.statvfs(folder)
    if not found.f_blocks:
        return None
    return found.f_frsize * (found.f_bfree if os.geteuid() == 0 else found.f_bavail)


def may_write(path: Path) -> bool:
    """Whether this user's rights allow writing to a file, or making entries in a folder."""
    return os.access(path, os.W_OK)


def open_lock(path: Path, *, make: bool) -> int:
    """Open a lock file; `make`: for writing, made if it is missing."""
    fd = locks.open_lock(path, make=make)
    try:
        if make and not os.fstat(fd).st_size:
            with contextlib.suppress(FileNotFoundError):
                _inherit_owner(path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def overwrite(fd: int, content: bytes) -> None:
    """Replace an open file's content in place: for the lock's note alone."""
    os.ftruncate(fd, 0)
    if content:
        os.pwrite(fd, content, 0)


def peek(fd: int) -> bytes:
    """The first 4 KiB of an open file."""
    return os.pread(fd, 4096, 0)


def close(fd: int) -> None:
    """Close a file, and with it give up its lock."""
    os.close(fd)
