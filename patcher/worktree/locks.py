"""flock on a file that only those can open who may write to its folder.

A flock can be taken by whoever can open the file, also for reading alone. So a lock file that anyone may read lets
anyone stop its owner for ever: the file gets no more rights than its folder gives (a folder of mode 0755 gives a lock
file of mode 0600, one of mode 0775 one of 0660), and no lock is waited for without a limit.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from typing import Callable

from patcher.worktree.files import IrregularFileError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockUnsupportedError(OSError):
    """The file system offers no flock."""


class ForeignLockError(OSError):
    """The lock file belongs to somebody who has no say over its folder, so they could hold it for ever."""


class LockHeldError(Exception):
    """Somebody else held the lock for longer than was waited."""


def open_lock(path: str | os.PathLike[str], *, make: bool = True) -> int:
    """A descriptor of the lock file. `make`: for writing, made if it is missing; else for reading, as it is.

    A file of ours that has more rights than its folder gives loses them. What the file holds is left alone.

    Raises:
        IrregularFileError: a symlink, a pipe, a folder or a device is in its place.
        ForeignLockError: it belongs neither to this user nor to root nor to the folder's owner, and the folder lets
            others than its owner's group make files, as `/tmp` does.
        OSError: it cannot be opened.
    """
    folder = os.stat(os.path.dirname(os.fspath(path)) or ".")
    mode = _lock_mode(folder.st_mode)
    try:
        fd = os.open(path, _WRITE if make else _READ, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path)) from error
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))
        if found.st_uid not in (os.geteuid(), 0, folder.st_uid) and folder.st_mode & stat.S_IWOTH:
            raise ForeignLockError(errno.EPERM, "belongs to somebody else", os.fspath(path))
        if make and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & ~mode:
            os.fchmod(fd, stat.S_IMODE(found.st_mode) & mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def try_lock(fd: int, *, exclusive: bool = True) -> bool:
    """Take the lock if it is free.

    Raises:
        LockUnsupportedError: the file system offers no flock.
    """
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise LockUnsupportedError(error.errno, error.strerror or "no flock") from error
        raise
    return True


def await_lock(fd: int, wait: float, *, exclusive: bool = True, on_wait: Callable[[], None] | None = None) -> None:
    """Take the lock, waiting up to `wait` seconds. `on_wait` is called once when it is held by somebody else.

    Raises:
        LockHeldError: it is still held after that time.
        LockUnsupportedError: the file system offers no flock.
    """
    deadline, pause, told = time.monotonic() + wait, 0.002, False
    while not try_lock(fd, exclusive=exclusive):
        if time.monotonic() >= deadline:
            raise LockHeldError
        if not told and on_wait is not None:
            told = True
            on_wait()
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(pause * 1.5, 0.05)


def is_at(fd: int, path: str | os.PathLike[str]) -> bool:
    """Whether the open file is the one that `path` names now: its holder may have removed it before letting go."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _lock_mode(folder: int) -> int:
    """Read and write for those who may write to the folder: rwxrwxr-x gives rw-rw----.

    In a folder like `/tmp` (rwxrwxrwt) everybody may make files, so the lock is its owner's alone.
    """
    mode = stat.S_IRUSR | stat.S_IWUSR
    if folder & stat.S_IWOTH and folder & stat.S_ISVTX:
        return mode
    if folder & stat.S_IWGRP:
        mode |= stat.S_IRGRP | stat.S_IWGRP
    if folder & stat.S_IWOTH:
        mode |= stat.S_IROTH | stat.S_IWOTH
    return mode
