"""SHA-256 of contents, of files, and of many files at once."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from typing import Iterable, NamedTuple

from patcher.worktree import files

ABSENT = "0" * 64
"""Stands for the digest of a file that does not exist. No content is known that has this digest."""
_PIECE = 1 << 20
_SAMPLE = 16
"""Files that are read first, to see whether threads are worth it."""
_QUICK = 0.0003
"""Seconds per file below which threads cost more than they gain. Small files from the page cache take less."""
_AT_ONCE = 16
"""The most threads. A guess: enough to hide the round trips of a network disk."""


class Digest(NamedTuple):
    """A regular file as it was read: `size` in bytes, `mode` as permission bits with setuid, setgid and sticky."""

    sha256: str
    size: int
    mode: int


def digest(path: str) -> Digest:
    """The digest of the file at `path`. Raises OSError, also if it is a symlink or no regular file."""
    fd = files.open_regular(path)
    try:
        found = os.fstat(fd)
        so_far, size = hashlib.sha256(), 0
        piece = os.read(fd, min(_PIECE, found.st_size + 1))
        while piece:
            so_far.update(piece)
            size += len(piece)
            piece = os.read(fd, _PIECE)
        return Digest(so_far.hexdigest(), size, stat.S_IMODE(found.st_mode))
    finally:
        os.close(fd)


def digest_of(content: bytes) -> str:
    """The SHA-256 of `content`, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def of_link(target: str) -> str:
    """The digest that stands for a symlink with this target."""
    return digest_of(os.fsencode(target))


def digests(root: str, paths: Iterable[str]) -> tuple[dict[str, Digest], dict[str, OSError]]:
    """The digests of files below `root`, by path, and the errors of those that cannot be read."""
    wanted = list(paths)
    found: dict[str, Digest] = {}
    failed: dict[str, OSError] = {}

    def work(share: list[str]) -> None:
        for path in share:
            try:
                found[path] = digest(os.path.join(root, path))
            except OSError as error:
                failed[path] = error

    began = time.monotonic()
    work(wanted[:_SAMPLE])
    if time.monotonic() - began < _QUICK * _SAMPLE:
        work(wanted[_SAMPLE:])
        return found, failed
    count = min(_AT_ONCE, 2 * (os.cpu_count() or 1), len(wanted))
    shares = [wanted[_SAMPLE:][number::count] for number in range(count)]
    threads = [threading.Thread(target=work, args=(share,)) for share in shares if share]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, failed
