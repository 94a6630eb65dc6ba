"""Read and write files safely where somebody may have put something else in their place.

A tree, a shared cache or a host can have a symlink, a pipe, a device, a folder or a huge file under any name that this
tool opens. So reading never blocks (a pipe without a writer), never reads without end (`/dev/zero`), and follows no
symlink unless asked to (one to `~/.ssh/id_rsa`). Writing never goes through a symlink into another file.
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
"""The largest settings file, record, ledger note or git reference that is read. Real ones have a few kB."""
SOURCE_BYTES = 16 << 20
"""The largest source file that is read. The largest in verl 0.1 to 0.9 and vLLM 0.20 has 0.6 MB."""
DATA_BYTES = 256 << 20
"""The largest of all other files that are read into memory at once. A guess."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""What fsync fails with on file systems that have none."""
WRITER_SECONDS = 5
"""Seconds to wait for somebody to open a pipe for writing that the user has named. A guess."""
_PIECE = 1 << 20
_NULL = os.makedev(1, 3)
"""The number of `/dev/null`, the only device that is read."""


class IrregularFileError(OSError):
    """Not a regular file: a folder, a pipe, a socket, a device, or a symlink that is not followed."""


class TooLargeError(OSError):
    """The file is larger than the caller allows."""


def open_regular(path: str | os.PathLike[str], *, follow: bool = False) -> int:
    """Open a regular file for reading, and return the descriptor. It never blocks; a device is not even opened.

    `follow`: follow a symlink in the last part of `path`. Symlinks further up are always followed.

    Raises:
        IrregularFileError: it is no regular file.
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
    """The bytes of a regular file of at most `most` bytes. `follow` as in `open_regular`.

    Raises:
        TooLargeError: it has more, even if its size says less (files in `/proc` say 0).
        IrregularFileError: it is no regular file.
        OSError: it cannot be read.
    """
    return read_and_status(path, most, follow=follow)[0]


def read_and_status(path: str | os.PathLike[str], most: int, *, follow: bool = False) -> tuple[bytes, os.stat_result]:
    """As `read`, with the file's status at the time it was opened."""
    fd = open_regular(path, follow=follow)
    try:
        found = os.fstat(fd)
        return _read_all(fd, most, found.st_size, path), found
    finally:
        os.close(fd)


def read_stream(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a file, pipe or terminal that the user has named. Raises as `open_stream`, and TooLargeError."""
    fd = open_stream(path)
    try:
        return _read_all(fd, most, os.fstat(fd).st_size, path)
    finally:
        os.close(fd)


def read_text(
    path: str | os.PathLike[str], most: int, *, encoding: str = "utf-8", errors: str = "strict", follow: bool = False
) -> str:
    """The text of a regular file of at most `most` bytes, with every line end as `\\n`.

    Raises:
        UnicodeDecodeError: with `errors="strict"`, it is no text in that encoding.
        OSError: as `read`.
    """
    text = read(path, most, follow=follow).decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> str:
    """The real path of `path`, which must lie below `root`; symlinks inside it are followed.

    Raises:
        IrregularFileError: a symlink leads out of `root`, or in a circle.
    """
    real, top = os.path.realpath(path), os.path.realpath(root)
    if not real.startswith(top.rstrip(os.sep) + os.sep):
        raise IrregularFileError(errno.ELOOP, "a symlink that leads out of the tree", os.fspath(path))
    return real


def lies_in(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` is `folder` or below it, either as it is written or with all symlinks followed."""
    real = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(place, "").startswith(real) for place in (os.path.abspath(path), os.path.realpath(path)))


def leads_into(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether `path` with all symlinks followed is `folder` or below it."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))


def open_binary(path: str | os.PathLike[str], *, follow: bool = True, buffering: int = -1) -> BinaryIO:
    """A binary stream of a regular file, for reading parts of a large one.

    Raises:
        OSError: as `open_regular`.
    """
    return os.fdopen(open_regular(path, follow=follow), "rb", buffering)


def open_stream(path: str | os.PathLike[str]) -> int:
    """Open what the user has named for reading: a regular file, a pipe such as `<(command)`, a terminal, `/dev/null`.

    A pipe gets `WRITER_SECONDS` for somebody to open it for writing.

    Raises:
        IrregularFileError: it is something else, such as `/dev/zero`, which never ends; or nobody writes to the pipe.
        OSError: it cannot be opened.
    """
    _require_stream(os.stat(path), path)
    fd = os.open(path, _READ)
    try:
        found = os.fstat(fd)
        _require_stream(found, path)
        if stat.S_ISCHR(found.st_mode) and not os.isatty(fd) and found.st_rdev != _NULL:
            raise not_regular(path)
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
    """Put a new file with `content` at `path` in one step. A symlink at `path` is replaced, not followed.

    The content is synced to the disk before the file gets its name; with `durable` the name is synced too.

    `mode`: the permission bits. By default they are what the umask leaves of rw-rw-rw-, and a file that root makes
    belongs to the owner of its folder. `draft`: where the file is written first; a file that a killed run has left
    there is removed. By default that is a unique name beside `path`.

    Raises:
        OSError: it cannot be written; what was at `path` is still there.
    """
    place = os.fspath(path)
    if draft is None:
        beside = _unique_name_beside(place)
    else:
        beside = os.fspath(draft)
        try:
            os.unlink(beside)
        except FileNotFoundError:
            pass
    try:
        fd = os.open(beside, _CREATE, 0o666 if mode is None else 0o600)
    except OSError as error:
        error.filename = place  # People have asked for this file, and have never heard of the one beside it.
        raise
    try:
        try:
            write_all(fd, content)
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
        sync_folder(os.path.dirname(place) or ".")


def write_all(fd: int, content: bytes) -> None:
    """Write all of `content`: `os.write` may write a part of it."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def create_whole(path: str | os.PathLike[str], content: bytes, *, mode: int = 0o644) -> bool:
    """Put a new file with `content` at `path` in one step, unless something is there already.

    Returns whether the file was put there.

    Raises:
        OSError: it cannot be written, or the file system has no hard links.
    """
    beside = _unique_name_beside(os.fspath(path))
    try:
        write_whole_file(beside, content, mode=mode, durable=False)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(beside)
    return True


def inherit_owner(path: str | os.PathLike[str]) -> None:
    """Give what root has made to the owner of its folder, who could not change it otherwise.

    Nothing happens for other users, and where root may not do so: on many network file systems root has only the rights
    of the user `nobody`.
    """
    if os.geteuid() == 0:
        above = os.stat(os.path.dirname(os.fspath(path)) or ".")
        if above.st_uid or above.st_gid:
            try:
                os.chown(path, above.st_uid, above.st_gid, follow_symlinks=False)
            except PermissionError:
                pass


def sync(fd: int) -> None:
    """Wait until what was written to `fd` is on the disk. File systems without fsync are no error."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_folder(path: str) -> None:
    """Wait until a folder's entries are on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def _await_writer(fd: int, path: str | os.PathLike[str]) -> None:
    """Wait for data in a pipe, or until all writers are gone. Raises IrregularFileError if there never was a writer.

    `poll` does not tell a pipe that nobody has opened for writing from one whose writer is silent; a read does: it
    returns nothing for the first, and fails with BlockingIOError for the second.
    """
    waiting = select.poll()
    waiting.register(fd, select.POLLIN | select.POLLHUP)
    if not waiting.poll(WRITER_SECONDS * 1000):
        try:
            os.read(fd, 1)
        except BlockingIOError:
            return
        raise IrregularFileError(errno.EINVAL, "a pipe that nobody writes to", os.fspath(path))


def _unique_name_beside(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.part")


def not_regular(path: str | os.PathLike[str]) -> IrregularFileError:
    """The error for something that is neither a regular file nor a symlink."""
    return IrregularFileError(errno.EINVAL, "not a regular file", os.fspath(path))


def _require_stream(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        raise not_regular(path)


def _require_regular(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise IrregularFileError(errno.ELOOP, "a symlink, where a file is expected", os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise not_regular(path)


def _read_all(fd: int, most: int, size: int, path: str | os.PathLike[str]) -> bytes:
    if size > most:
        raise _too_large(path, most)
    parts: list[bytes] = []
    left = most + 1
    while left > 0:
        part = os.read(fd, min(left, max(size + 1, 1 << 16), _PIECE))  # One more than the size, to see the end.
        if not part:
            return b"".join(parts)
        parts.append(part)
        left -= len(part)
    raise _too_large(path, most)


def _too_large(path: str | os.PathLike[str], most: int) -> TooLargeError:
    return TooLargeError(errno.EFBIG, f"more than {most} bytes", os.fspath(path))
