"""A cache of digests: a file is not read again as long as its stamp is the same, as with git's index.

A stamp is `[size, mtime, ctime, inode]`, times in nanoseconds. No program can set a ctime, so an edit that restores the
other three is noticed. A file that was changed just before it was read is read again, as a second change could have the
same times.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any, Iterable

from patcher.worktree import files, hashing
from patcher.worktree.hashing import Digest
from patcher.worktree.json_text import parse_json

MOST_BYTES = 64 << 20
"""The largest cache file that is read: some 300,000 paths."""
SETTLED = 2 * 10**9
"""Nanoseconds after which a second change surely has another time: the coarsest clock, that of FAT, has 2 s."""
_FORM = 1
_LENGTH = 5
"""Of an entry: a stamp and the digest."""


class DigestCache:
    """Digests of files below `root`, kept in the file `place`. A missing or damaged cache is an empty one."""

    def __init__(self, root: str, place: str) -> None:
        self._root = root
        self._place = place
        self._written, self._known = _read(place, root)
        self._learned = False
        self._seen: dict[str, list[Any]] = {}

    def digests(self, paths: Iterable[str]) -> tuple[dict[str, Digest], dict[str, OSError]]:
        """As `hashing.digests`, but files with a known stamp are not read."""
        found: dict[str, Digest] = {}
        unread: dict[str, list[int]] = {}
        began = time.time_ns()
        for path in paths:
            there = self._status(path)
            entry = self._known.get(path)
            if there is not None and entry is not None and self._holds(entry, there):
                found[path] = Digest(entry[4], there.st_size, stat.S_IMODE(there.st_mode))
                self._seen[path] = entry
            else:
                unread[path] = [] if there is None else _stamp(there)
        read, failed = hashing.digests(self._root, unread)
        for path, digest in read.items():
            after = self._status(path)
            if after is not None and _stamp(after) == unread[path] and _settled(after, began):
                self._seen[path] = [*unread[path], digest.sha256]
                self._learned = True
        return {**found, **read}, failed

    def save(self) -> None:
        """Write the digests that were asked for, and forget all others. If that fails, the next run reads more."""
        if not self._learned and len(self._seen) == len(self._known):
            return
        try:
            content = json.dumps({"form": _FORM, "root": self._root, "files": self._seen}).encode("ascii")
            os.makedirs(os.path.dirname(self._place), mode=0o700, exist_ok=True)
            files.write_whole_file(self._place, content, mode=0o600, durable=False)
        except OSError:
            pass

    def _status(self, path: str) -> Any:
        try:
            return os.lstat(os.path.join(self._root, path))
        except OSError:
            return None

    def _holds(self, entry: list[Any], there: os.stat_result) -> bool:
        """Whether the entry is still true. A file that changed shortly before the cache was written does not count."""
        return stat.S_ISREG(there.st_mode) and entry[:4] == _stamp(there) and _settled(there, self._written)


def _stamp(there: os.stat_result) -> list[int]:
    return [there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino]


def _settled(there: os.stat_result, at: int) -> bool:
    return max(there.st_mtime_ns, there.st_ctime_ns) < at - SETTLED


def _read(place: str, root: str) -> tuple[int, dict[str, list[Any]]]:
    """When the cache was written, by the clock of its disk, and its entries; only a cache of this user counts."""
    try:
        content, there = files.read_and_status(place, MOST_BYTES)
        found = parse_json(content, MOST_BYTES)
        if there.st_uid == os.geteuid() and found["form"] == _FORM and found["root"] == root:
            entries = found["files"].items()
            return there.st_mtime_ns, {path: entry for path, entry in entries if _is_entry(entry)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return 0, {}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == _LENGTH and isinstance(entry[4], str)
