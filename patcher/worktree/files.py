"""Read and replace files in a folder where somebody may have planted something else in their place.

A tree, a shared cache or a host can hold a symlink, a pipe, a device, a folder or an endless file under any name that
this tool opens. Reading such a name must not block (a pipe without a writer), not read without end (`/dev/zero`) and
not lead elsewhere (a symlink to `~/.ssh/id_rsa`); writing must not go through it into another file.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

SETTINGS_BYTES = 1 << 20
"""The most that a settings file, a record, a ledger note or a git reference may hold. Real ones have a few kB."""
SOURCE_BYTES = 16 << 20
"""The most that a source file may hold. The largest in verl 0.1 to 0.9 and vLLM 0.20 has 0.6 MB."""
DATA_BYTES = 256 << 20
"""The most that is read into memory of any other file."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
WRITER_SECONDS = 5
"""For how long somebody is waited for who opens a pipe for writing that the user has named."""
_PIECE = 1 << 20
_NULL = os.makedev(1, 3)


class IrregularFileError(OSError):
    """Not a regular file: a folder, a pipe, a socket, a device, or (where links are not followed) a symlink."""


class TooLargeError(OSError):
    """The file holds more than the caller reads."""


def open_regular(path: str | os.PathLike[str], *, follow: bool = False) -> int:
    """A descriptor to read a regular file with. It never blocks, and a device is not opened at all.

    `follow`: a symlink as the last part of `path` is followed; links further up always are.

    Raises:
        IrregularFileError: there is something else than a regular file.
        OSError: it cannot be opened.
    """
    _require_regular(os.stat(path) if follow else os.lstat(path), path)
    fd = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    try:
        _require_regular(os.fstat(fd), path)  # It may have been replaced between the two calls.
    except BaseException:
        os.close(fd)
        raise
    return fd


def read(path: str | os.PathLike[str], most: int, *, follow: bool = False) -> bytes:
    """The bytes of a regular file that holds at most `most` bytes.

    Raises:
        TooLargeError: it holds more, whatever its size says (`/proc` files say 0).
        IrregularFileError: there is something else than a regular file.
        OSError: it cannot be read.
    """
    return read_and_status(path, most, follow=follow)[0]


def read_and_status(path: str | os.PathLike[str], most: int, *, follow: bool = False) -> tuple[bytes, os.stat_result]:
    """As `read`, and the status that the file had when it was opened."""
    fd = open_regular(path, follow=follow)
    try:
        found = os.fstat(fd)
        return _read_all(fd, most, found.st_size, path), found
    finally:
        os.close(fd)


def read_stream(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of what the user has named, see `open_stream`. Raises OSError, TooLargeError for more than `most`."""
    fd = open_stream(path)
    try:
        return _read_all(fd, most, os.fstat(fd).st_size, path)
    finally:
        os.close(fd)


def read_text(
    path: str | os.PathLike[str], most: int, *, encoding: str = "utf-8", errors: str = "strict", follow: bool = False
) -> str:
    """The text of a regular file that holds at most `most` bytes, with newlines as `\\n`.

    Raises:
        UnicodeDecodeError: with `errors="strict"`, it is no text in that encoding.
        OSError: as `read`.
    """
    text = read(path, most, follow=follow).decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> str:
    """The real place of `path`, which lies below `root`: symlinks within the tree are followed, none leads out of it.

    Raises:
        IrregularFileError: a symlink leads out of `root`, or in a circle.
    """
    real, top = os.path.realpath(path), os.path.realpath(root)
    if not real.startswith(top.rstrip(os.sep) + os.sep):
        raise IrregularFileError(errno.ELOOP, "a symlink that leads out of the tree", os.fspath(path))
    return real


def lies_in(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` is `folder` or below it: as it is written, or by where its links lead."""
    real = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(place, "").startswith(real) for place in (os.path.abspath(path), os.path.realpath(path)))


def leads_into(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` with all links resolved is `folder` or below it."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))


def open_binary(path: str | os.PathLike[str], *, follow: bool = True, buffering: int = -1) -> BinaryIO:
    """A stream of a regular file's bytes, for those who read parts of a file that may be large.

    Raises:
        OSError: as `open_regular`.
    """
    return os.fdopen(open_regular(path, follow=follow), "rb", buffering)


def open_stream(path: str | os.PathLike[str]) -> int:
    """A descriptor to read what the user has named: a regular file, a pipe as of `<(command)`, or a terminal.

    A pipe is waited for until somebody opens it for writing, a few seconds at most. A device that could be read for
    ever is refused.

    Raises:
        IrregularFileError: there is something else.
        OSError: it cannot be opened.
    """
    _require_stream(os.stat(path), path)
    fd = os.open(path, _READ)
    try:
        found = os.fstat(fd)
        _require_stream(found, path)
        if stat.S_ISCHR(found.st_mode) and not os.isatty(fd) and found.st_rdev != _NULL:
            raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))
        if stat.S_ISFIFO(found.st_mode):
            _await_writer(fd, path)
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_whole_file(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    mode: int | None = None,
    draft: str | os.PathLike[str] | None = None,
    durable: bool = True,
) -> None:
    """Put a new file with `content` at `path` in one step. What was there, also a symlink, is replaced itself.

    The content is on the disk before the name is; the name is too when this returns, if `durable`. `mode`: the
    permission bits; by default what the umask leaves of rw-rw-rw-, in a file that
    belongs to the owner of its folder if root makes it. `draft`: the path that the file has until then, for
    callers who clear what a killed run has left; what is there goes first. By default it is a name beside `path` that
    nobody else takes.

    Raises:
        OSError: it cannot be written; then what was at `path` is still there.
    """
    place = os.fspath(path)
    folder, name = os.path.split(place)
    if draft is None:
        beside = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    else:
        beside = os.fspath(draft)
        try:
            os.unlink(beside)
        except FileNotFoundError:
            pass
    fd = os.open(beside, _CREATE, 0o666 if mode is None else 0o600)
    try:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if mode is not None:
                os.fchmod(fd, mode)
            else:
                inherit_owner(beside)
            sync(fd)
        finally:
            os.close(fd)
        os.replace(beside, place)
    except BaseException:
        try:
            os.unlink(beside)
        except OSError:
            pass
        raise
    if durable:
        sync_folder(folder or ".")


def create_whole(path: str | os.PathLike[str], content: bytes, *, mode: int = 0o644) -> bool:
    """Put a new file with `content` at `path` in one step, unless something is there. Whether it was put there.

    Raises:
        OSError: it cannot be written, or the file system has no hard links.
    """
    folder, name = os.path.split(os.fspath(path))
    beside = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    write_whole_file(beside, content, mode=mode, durable=False)
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(beside)
    return True


def inherit_owner(path: str | os.PathLike[str]) -> None:
    """Have what root has made belong to the owner of its folder, who could not change it otherwise.

    On many network file systems root has no more rights than the user `nobody`: then it stays as it is.
    """
    if os.geteuid() == 0:
        above = os.stat(os.path.dirname(os.fspath(path)) or ".")
        if above.st_uid or above.st_gid:
            try:
                os.chown(path, above.st_uid, above.st_gid, follow_symlinks=False)
            except PermissionError:
                pass


def sync(fd: int) -> None:
    """Have what was written to `fd` on the disk; file systems that cannot say so are taken at their word."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_folder(path: str) -> None:
    """Have a folder's entries on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def _await_writer(fd: int, path: str | os.PathLike[str]) -> None:
    """Wait for data, or for a writer that has none yet. One that nobody has ever opened for writing tells nothing."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN | select.POLLHUP)
    if not waiting.poll(WRITER_SECONDS * 1000):
        try:
            os.read(fd, 1)
        except BlockingIOError:
            return
        raise IrregularFileError(errno.EINVAL, "a pipe that nobody writes to", os.fspath(path))


def _require_stream(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))


def _require_regular(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise IrregularFileError(errno.ELOOP, "a symlink, where a file is expected", os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))


def _read_all(fd: int, most: int, size: int, path: str | os.PathLike[str]) -> bytes:
    if size > most:
        raise _too_large(path, most)
    parts: list[bytes] = []
    left = most + 1
    while left > 0:
        part = os.read(fd, min(left, max(size + 1, 1 << 16), _PIECE))
        if not part:
            return b"".join(parts)
        parts.append(part)
        left -= len(part)
    raise _too_large(path, most)


def _too_large(path: str | os.PathLike[str], most: int) -> TooLargeError:
    return TooLargeError(errno.EFBIG, f"more than {most} bytes", os.fspath(path))
