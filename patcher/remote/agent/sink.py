"""Bytes to the other side, without being held up for ever by one that is gone and has not said so."""

from __future__ import annotations

import os
import select
import stat
from typing import Callable

_PIECE = 4096
"""A pipe that is ready takes this much without blocking."""
_LARGE = 262_144


class Sink:
    """Writes to a pipe or socket. `gone` is asked every second in which nothing can be written."""

    def __init__(self, fd: int, gone: Callable[[], bool]) -> None:
        self._fd = fd
        self._gone = gone
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._socket = None
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            import socket  # Costs 3 ms, and sshd gives pipes nearly everywhere.

            self._socket = socket.socket(fileno=fd)
            self._now = socket.MSG_DONTWAIT

    def write(self, content: bytes) -> None:
        """All of `content`. Raises OSError where nobody reads it any more."""
        left = memoryview(content)
        while left:
            if not self._poll.poll(1000):
                if self._gone():
                    raise BrokenPipeError
                continue
            left = left[self._put(left) :]

    def _put(self, left: memoryview) -> int:
        if self._socket is None:
            return os.write(self._fd, left[:_PIECE])
        try:
            return self._socket.send(left[:_LARGE], self._now)
        except BlockingIOError:
            return 0
