"""The tree's own lock, `.uky-patch/lock`: the one that `uky-patch apply` takes where it runs on this machine."""

from __future__ import annotations

import json
import os
import platform
import time
from typing import Any

from patcher.messages import Refusal, phrase
from patcher.worktree import locks
from patcher.worktree.json_text import parse_json


class TreeLock:
    """Held within a `with`. Where the file system has no flock, `apply` refuses to run, and there is nobody to fear."""

    def __init__(self, root: str, *, wait: float) -> None:
        self._path = os.path.join(root, ".uky-patch", "lock")
        self._wait = wait
        self._fd = -1

    def __enter__(self) -> TreeLock:
        deadline = time.monotonic() + self._wait
        while True:
            fd = locks.open_lock(self._path)
            try:
                try:
                    locks.await_lock(fd, max(0.0, deadline - time.monotonic()))
                except locks.LockHeldError:
                    raise _busy(fd) from None
                except locks.LockUnsupportedError:
                    pass
                if locks.is_at(fd, self._path):
                    _sign(fd)
                    self._fd = fd
                    return self
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # Its holder has reverted everything and removed it.

    def __exit__(self, *_: Any) -> None:
        try:
            os.ftruncate(self._fd, 0)
        except OSError:
            pass
        os.close(self._fd)


def _sign(fd: int) -> None:
    note = {"pid": os.getpid(), "host": platform.node(), "purpose": "migrate"}
    note["since"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(note).encode("ascii"), 0)
    except OSError:
        pass


def _busy(fd: int) -> Refusal:
    try:
        note = parse_json(os.pread(fd, 4096, 0))
        told = {name: str(note[name]) for name in ("purpose", "pid", "since")}
        cause = phrase("held by {purpose} (process {pid} there, since {since})", **told)
    except (OSError, ValueError, KeyError, TypeError):
        cause = phrase("held by a run that reads it, or has only just begun")
    advice = phrase("Wait until it has ended, and run the command again.")
    return Refusal("tree-in-use", phrase("uky-patch is at work in the tree on the host"), cause, advice)
