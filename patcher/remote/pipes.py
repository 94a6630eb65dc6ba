"""Messages to and from a child process, with an end to patience: a side that neither reads nor writes is noticed."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from patcher.remote.agent import frames

_PIECE = 1 << 20


class SilentError(Exception):
    """Nothing moved for too long."""


class Pipes:
    """Both pipes of a child process. Sending is safe from several threads, receiving from one.

    An exception in the middle, such as KeyboardInterrupt, loses nothing that has been received.
    """

    def __init__(self, to_child: IO[bytes], from_child: IO[bytes]) -> None:
        self._to, self._from = to_child.fileno(), from_child.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._sending = threading.Lock()
        self._torn = False
        self._splitter = frames.Splitter()

    def send(self, message: Mapping[str, Any], body: bytes, patience: float) -> None:
        """One message whole. Raises SilentError after `patience` seconds without progress, OSError at the end."""
        with self._sending:
            self.write(frames.head(dict(message), len(body)) + body, patience)

    def write(self, content: bytes, patience: float) -> None:
        if self._torn:
            raise BrokenPipeError
        left = memoryview(content)
        try:
            while left:
                _await(self._to, select.POLLOUT, patience)
                try:
                    left = left[os.write(self._to, left[:_PIECE]) :]
                except BlockingIOError:
                    continue
        except BaseException:
            self._torn = True
            raise

    def hang_up(self) -> None:
        """Send nothing more; the child's input may then be closed."""
        with self._sending:
            self._torn = True

    def receive(self, patience: float) -> tuple[Mapping[str, Any], bytes] | None:
        """The next message and its body; None at the end. Raises SilentError, and ValueError for what is none."""
        while (found := self._splitter.next()) is None:
            _await(self._from, select.POLLIN, patience)
            if not self._read():
                return None
        return found

    def greeting(self, expected: bytes, patience: float) -> bytes | None:
        """Read on to `expected`: None, or what was said instead until the end.

        Raises SilentError after `patience` seconds in all.
        """
        deadline = time.monotonic() + patience
        said = b""
        while expected not in said:
            _await(self._from, select.POLLIN, deadline - time.monotonic())
            try:
                piece = os.read(self._from, _PIECE)
            except BlockingIOError:
                continue
            if not piece:
                return said
            said = (said + piece)[-100_000:]
        self._splitter.feed(said.partition(expected)[2])
        return None

    def _read(self) -> bool:
        try:
            piece = os.read(self._from, _PIECE)
        except BlockingIOError:
            return True
        self._splitter.feed(piece)
        return bool(piece)


def _await(fd: int, event: int, patience: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    if patience <= 0 or not poll.poll(patience * 1000):
        raise SilentError
