"""Write an archive (tar.gz) all or nothing: no name leads to it before it is whole and synced, and no file is
overwritten.

It is written to a file without a name (O_TMPFILE) that gets its name by a hard link at the end; where the file system
has no such files, to a temporary file beside it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from patcher.bundle.contents import Sealed
from patcher.errors import TreeError, UsageError, message_of
from patcher.i18n import phrase

MODE = 0o600
"""What a bug report holds is the user's until it is sent."""
_UNABLE = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS}


def place(output: Path | None) -> tuple[str, Path]:
    """The archive's top folder, and where it is written: `output`, a file or a folder, or a new file in this folder.

    Raises UsageError where the folder does not exist.
    """
    top = f"uky-bundle-{time.strftime('%Y%m%d-%H%M%S')}"
    path = (output or Path(f"{top}.tar.gz")).absolute()
    if path.is_dir():
        path /= f"{top}.tar.gz"
    if not path.parent.is_dir():
        raise UsageError(phrase("{folder}: there is no such folder", folder=path.parent))
    return top, path


def write(path: Path, top: str, files: Sequence[Sealed]) -> int:
    """Write the files below the folder `top`, in this order, and give the archive's size.

    Raises UsageError where there is something at `path`, TreeError where it cannot be written.
    """
    if os.path.lexists(path):
        raise _there_already(path)
    try:
        try:
            return _through(_nameless(path), top, files)
        except _NoNameError:
            return _through(_beside(path), top, files)
    except FileExistsError as error:
        raise _there_already(path) from error
    except OSError as error:
        wrapped = OSError(error.errno, error.strerror or str(error))
        raise TreeError(
            phrase("{path}: cannot be written", path=path),
            cause=message_of(wrapped),
            advice="Name another place with --output.",
        ) from error


def _there_already(path: Path) -> UsageError:
    return UsageError(
        phrase("{path}: is there already", path=path), advice="Nothing is overwritten: name another with --output."
    )


def _through(
    opened: AbstractContextManager[tuple[IO[bytes], Callable[[], None]]], top: str, files: Sequence[Sealed]
) -> int:
    with opened as (stream, publish):
        _pack(stream, top, files)
        stream.flush()
        os.fsync(stream.fileno())
        size = os.fstat(stream.fileno()).st_size
        publish()
        return size


def _pack(stream: IO[bytes], top: str, files: Sequence[Sealed]) -> None:
    now = int(time.time())
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=now) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        folder = _entry(top, now)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        for file in files:
            entry = _entry(f"{top}/{file.name}", now)
            entry.size = file.size
            if isinstance(file.content, bytes):
                archive.addfile(entry, io.BytesIO(file.content))
            else:
                file.content.seek(0)
                archive.addfile(entry, file.content)


def _entry(name: str, now: int) -> tarfile.TarInfo:
    """An entry that says nothing of who made it."""
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = now, MODE
    return entry


class _NoNameError(OSError):
    """A file without a name cannot be given one here."""


@contextlib.contextmanager
def _nameless(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    """A file without a name on the disk of `path`, and how to give it that name; the kernel removes it otherwise."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fd = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, MODE)
        except OSError as error:
            if error.errno in _UNABLE:
                raise _NoNameError from error
            raise

        def publish() -> None:
            try:
                os.link(f"/proc/self/fd/{fd}", path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError:
                raise
            except OSError as error:
                raise _NoNameError from error

        with os.fdopen(fd, "w+b") as stream:
            os.fchmod(fd, MODE)
            yield stream, publish
    finally:
        os.close(folder)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    """A file beside `path` that gets its name in the end; removed on the way out where it did not."""
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)

    def publish() -> None:
        try:
            os.link(name, path)
        except FileExistsError:
            raise
        except OSError:  # A file system without hard links.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
            Path(name).replace(path)

    try:
        with os.fdopen(fd, "w+b") as stream:
            yield stream, publish
    finally:
        Path(name).unlink(missing_ok=True)
