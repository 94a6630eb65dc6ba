"""File locks (flock) with a note in the file that says who holds the lock. All locks of this tool are made here.

Whoever can open the file, even for reading, can take the lock, and so stop its owner for ever. So a lock file has no
more rights than its folder: mode 0600 in a folder of mode 0755, 0660 in one of 0775. And every wait has a limit.

The note is a JSON object such as `{"pid": 4711, "host": "node3", "purpose": "apply", "since": "..."}`. It is only for
messages: the lock is held as long as the process lives, whatever the file says.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import time
from typing import Any, Callable, Collection, Dict

from patcher.worktree.files import inherit_owner, not_regular
from patcher.worktree.json_text import parse_json

Note = Dict[str, Any]
"""What the holder of a lock says about itself. Empty if it only reads, or has not written its note yet."""

_MOST = 4096
"""Bytes of a note that are read. The longest field is a command line of this tool."""
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockUnsupportedError(OSError):
    """The file system offers no flock."""


class ForeignLockError(OSError):
    """The lock file belongs to a user who does not own its folder, and who could hold the lock for ever."""


class LockHeldError(Exception):
    """Somebody else holds the lock; `owner` is their note."""

    def __init__(self, owner: Note) -> None:
        super().__init__("the lock is held")
        self.owner = owner


class Lock:
    """A lock that is held until `release`, or until the process ends."""

    def __init__(self, path: str, fd: int, *, signed: bool) -> None:
        self.path = path
        self._fd = fd
        self._signed = signed

    def release(self) -> None:
        """Remove the note, and unlock. Can be called again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                if self._signed:
                    _write_note(fd, b"")
            finally:
                os.close(fd)

    def remove(self) -> None:
        """Remove the file, and unlock. Whoever waits for the lock sees that the file is gone, and makes it anew."""
        if self._fd >= 0:
            os.unlink(self.path)
            self.release()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take(
    path: str | os.PathLike[str],
    note: Note | None,
    *,
    wait: float,
    on_wait: Callable[[Note], None] | None = None,
    on_held: Callable[[Note, int], None] | None = None,
) -> Lock:
    """Take the lock at `path`, and write `note` into it. Without a note: take a shared lock on a file that exists.

    If somebody holds it, wait up to `wait` seconds. `on_wait` is called once, with the holder's note; `on_held` at each
    try, with the note and the descriptor of the file, and it may raise to end the waiting.

    Raises:
        LockHeldError: it is still held after that time.
        LockUnsupportedError: the file system has no flock.
        FileNotFoundError: the folder does not exist, or its holder has removed it meanwhile.
        OSError: the file cannot be opened or made.
    """
    deadline, waiting = time.monotonic() + wait, False
    while True:
        fd = open_lock(path, make=note is not None)
        try:
            pause = 0.002
            while not try_lock(fd, exclusive=note is not None):
                owner, left = read_note(fd), deadline - time.monotonic()
                if on_held is not None:
                    on_held(owner, fd)
                if left <= 0:
                    raise LockHeldError(owner)
                if on_wait is not None and not waiting:
                    on_wait(owner)
                waiting = True
                time.sleep(min(pause, left))
                pause = min(pause * 1.5, 0.05)
            if is_at(fd, path):
                if note is not None:
                    _write_note(fd, json.dumps(note).encode("ascii"))
                return Lock(os.fspath(path), fd, signed=note is not None)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # The last holder has removed the file: this lock is on one that nobody else can see.


def is_free(path: str | os.PathLike[str]) -> bool:
    """Whether the lock file exists, can be read, and is locked by nobody, not even shared."""
    try:
        fd = open_lock(path, make=False)
    except OSError:
        return False
    try:
        return try_lock(fd)
    except OSError:
        return False
    finally:
        os.close(fd)


def read_note(fd: int) -> Note:
    """The note in an open lock file; empty if there is none that can be parsed."""
    try:
        note = parse_json(os.pread(fd, _MOST, 0))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def signature(purpose: str) -> Note:
    """The note of this process for a tree's lock. `since` is the UTC time in ISO 8601."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return {"pid": os.getpid(), "host": os.uname().nodename, "purpose": purpose, "since": since}


def end_orphans(over: Collection[str]) -> Callable[[Note, int], None]:
    """A function for `on_held` of `take`: end the agents that a cut connection has left, and wait for nobody else.

    `over` are the ids of runs whose client is gone. A holder with such a `run` in its note gets SIGTERM: its agent
    finishes what it is doing, and ends. For any other holder LockHeldError is raised at once.
    """

    ending = False

    def on_held(owner: Note, fd: int) -> None:
        nonlocal ending
        if str(owner.get("run")) in over:
            ending = True
            _hang_up(owner, fd)
        elif owner or not ending:  # An agent that ends removes its note just before it unlocks.
            raise LockHeldError(owner)

    return on_held


def _hang_up(owner: Note, fd: int) -> None:
    """Send SIGTERM to the agent of this note, if it is a process of this user and machine that has this file open."""
    pid = owner.get("pid")
    if owner.get("node") != os.uname().nodename or not isinstance(pid, int) or pid <= 1 or pid == os.getpid():
        return
    ours = os.fstat(fd)
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.path.samestat(ours, os.stat(f"/proc/{pid}/fd/{name}")):
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # A stopped process hears SIGTERM only when it goes on.
                return
    except OSError:
        return


def open_lock(path: str | os.PathLike[str], *, make: bool = True) -> int:
    """Open the lock file: with `make` for writing, and made if it is missing; else for reading.

    With `make`, a file of this user that has more rights than its folder allows loses them. Its content stays.

    Raises:
        IrregularFileError: it is a symlink, a pipe, a folder or a device.
        ForeignLockError: it belongs neither to this user nor to root nor to the folder's owner, in a folder where
            everybody may make files, such as `/tmp`.
        OSError: it cannot be opened.
    """
    folder = os.stat(os.path.dirname(os.fspath(path)) or ".")
    mode = _lock_mode(folder.st_mode)
    try:
        fd = os.open(path, _WRITE if make else _READ, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise not_regular(path) from error
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise not_regular(path)
        if found.st_uid not in (os.geteuid(), 0, folder.st_uid) and folder.st_mode & stat.S_IWOTH:
            raise ForeignLockError(errno.EPERM, "belongs to somebody else", os.fspath(path))
        if make and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & ~mode:
            os.fchmod(fd, stat.S_IMODE(found.st_mode) & mode)
        if make and not found.st_size:
            try:
                inherit_owner(path)
            except FileNotFoundError:
                pass  # Its holder has removed it just now; the caller asks `is_at`.
    except BaseException:
        os.close(fd)
        raise
    return fd


def try_lock(fd: int, *, exclusive: bool = True) -> bool:
    """Take the lock on an open file if it is free, and return whether it was.

    Raises:
        LockUnsupportedError: the file system has no flock.
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


def _write_note(fd: int, content: bytes) -> None:
    try:
        os.ftruncate(fd, 0)
        if content:
            os.pwrite(fd, content, 0)
    except OSError:
        pass  # For example on a full disk. The lock holds without a note.


def is_at(fd: int, path: str | os.PathLike[str]) -> bool:
    """Whether the open file is still the one at `path`. The last holder may have removed it before unlocking."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _lock_mode(folder: int) -> int:
    """The permission bits of a lock file: those who may write to the folder may read and write it.

    rwxrwxr-x gives rw-rw----. In a folder such as `/tmp` (rwxrwxrwt) only the owner of the file may.
    """
    mode = stat.S_IRUSR | stat.S_IWUSR
    if folder & stat.S_IWOTH and folder & stat.S_ISVTX:
        return mode
    if folder & stat.S_IWGRP:
        mode |= stat.S_IRGRP | stat.S_IWGRP
    if folder & stat.S_IWOTH:
        mode |= stat.S_IROTH | stat.S_IWOTH
    return mode
