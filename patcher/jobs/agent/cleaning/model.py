"""One thing that a job has left, or that stands in its way."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

from patcher.messages import Message

Item = Dict[str, Any]
"""`kind`, `key` (what and which one: it changes when another takes its place), `what`, `why`, and facts of its kind."""
Items = List[Item]
Identity = Tuple[int, int]


def item(kind: str, what: str, which: tuple[Any, ...], why: Message, /, **facts: Any) -> Item:
    """`which` tells it from another that takes its place later: a process's start, a file's inode."""
    key = ":".join(str(part) for part in (kind, what, *which))
    return dict(facts, kind=kind, key=key, what=what, why=why)


def identity_of(path: str) -> Identity | None:
    """Device and inode of what is at `path` itself, no link followed; None where there is nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def size_of(path: str, most: int = 200_000) -> int:
    """Bytes of a file, or of what is below a folder; of a very full one only its first entries."""
    try:
        total = os.lstat(path).st_size
    except OSError:
        return 0
    for above, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size
            except OSError:
                continue
        most -= len(names)
        if most < 0:
            break
    return total
