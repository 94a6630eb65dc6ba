"""The one lock of this tool: flock on a file, with a note in it that says who holds it.

A flock can be taken by whoever can open the file, also for reading alone. So a lock file that anyone may read lets
anyone stop its owner for ever: the file gets no more rights than its folder gives (a folder of mode 0755 gives a lock
file of mode 0600, one of mode 0775 one of 0660), and no lock is waited for without a limit.

The note is a courtesy, a JSON object such as `{"pid": 4711, "host": "node3", "purpose": "apply", "since": "..."}`. The
lock holds without it: the kernel lets go when the process ends, whatever the file says.
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

from patcher.worktree.files import IrregularFileError, inherit_owner
from patcher.worktree.json_text import parse_json

Note = Dict[str, Any]
"""What a lock's holder says of itself; empty for a holder that has not written it yet, or that only reads."""

_MOST = 4096
"""Bytes of a note that are read. The longest field is a command line of ours."""
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockUnsupportedError(OSError):
    """The file system offers no flock."""


class ForeignLockError(OSError):
    """The lock file belongs to somebody who has no say over its folder, so they could hold it for ever."""


class LockHeldError(Exception):
    """Somebody else held the lock for longer than was waited; `owner` is their note."""

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
        """Let go, and take the note out."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                if self._signed:
                    _write_note(fd, b"")
            finally:
                os.close(fd)

    def remove(self) -> None:
        """Remove the file, and let go: whoever waits for it sees that it is gone, and starts anew."""
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
    """The lock at `path`, signed with `note`; without a note, a reader's lock on a file that is there.

    It is waited for up to `wait` seconds. `on_wait` is called once with the holder's note, when somebody holds it;
    `on_held` each time that it is found held, with the note and the open file: it may raise to give up.

    Raises:
        LockHeldError: it is still held after that time.
        LockUnsupportedError: the file system offers no flock.
        FileNotFoundError: the folder is not there, or was removed meanwhile by who held the lock.
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
        os.close(fd)  # Its holder has ended and removed it.


def is_free(path: str | os.PathLike[str]) -> bool:
    """Whether the lock file is there, may be read, and nobody holds it, to read or to write."""
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
    """What the holder of an open lock file says of itself."""
    try:
        note = parse_json(os.pread(fd, _MOST, 0))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def signature(purpose: str) -> Note:
    """The note of this process, as `.uky-patch/lock` holds it."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    return {"pid": os.getpid(), "host": os.uname().nodename, "purpose": purpose, "since": since}


def end_orphans(over: Collection[str]) -> Callable[[Note, int], None]:
    """For `take`'s `on_held`: a holder whose `run` is among `over` gets a signal, as its client is gone, and we wait.

    Anybody else's lock is not: LockHeldError is raised at once. For example `over` holds the run that a cut connection
    has left on the host; its agent ends what it is doing, and then itself.
    """

    ending = False

    def on_held(owner: Note, fd: int) -> None:
        nonlocal ending
        if str(owner.get("run")) in over:
            ending = True
            _hang_up(owner, fd)
        elif owner or not ending:  # An orphan that ends takes its note out just before it lets go.
            raise LockHeldError(owner)

    return on_held


def _hang_up(owner: Note, fd: int) -> None:
    """Signal to an orphaned agent that its client is gone: only to a process of ours that has this very file open."""
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
        if make and not found.st_size:
            try:
                inherit_owner(path)
            except FileNotFoundError:
                pass  # Its holder has removed it; `is_at` tells who takes it.
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


def _write_note(fd: int, content: bytes) -> None:
    try:
        os.ftruncate(fd, 0)
        if content:
            os.pwrite(fd, content, 0)
    except OSError:
        pass  # For example a full disk.


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
