"""Work that a forked process does while this one goes on: what the plain job runs is asked for last."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Promise(Generic[T]):
    """What a forked process works out. `get` waits for it; None where the process came to nothing."""

    pid: int
    pipe: int
    _setting_or_default: list[T | None] | None = None

    def get(self) -> T | None:
        if self._setting_or_default is None:
            with os.fdopen(self.pipe, "rb") as answer:
                content = answer.read()
            self._reap()
            # The bytes come from a process that this one has forked.
            self._setting_or_default = [pickle.loads(content) if content else None]  # noqa: S301
        return self._setting_or_default[0]

    def drop(self) -> None:
        """Let it go, finished or not."""
        if self._setting_or_default is None:
            self._setting_or_default = [None]
            os.close(self.pipe)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


@contextmanager
def prefetch(work: Callable[[], T]) -> Iterator[Promise[T] | None]:
    """Begin `work` in a process of its own; None where there is one core alone, or other threads run."""
    # A fork copies this thread alone: locks that other threads hold would stay locked for ever.
    if not hasattr(os, "fork") or (os.cpu_count() or 1) < 2 or threading.active_count() > 1:
        yield None
        return
    receiving, sending = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _work(work, sending)
    os.close(sending)
    promise: Promise[T] = Promise(pid, receiving)
    try:
        yield promise
    finally:
        promise.drop()


def _work(work: Callable[[], object], sending: int) -> None:
    """In the forked process: nothing of it is seen but the answer."""
    try:
        # Nothing that the process prints, and no traceback of it, reaches the terminal.
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        with os.fdopen(sending, "wb") as answer:
            answer.write(pickle.dumps(work()))
    finally:
        os._exit(0)
