"""A line between ssh and sshd that can be cut, go silent, or be slow, at a byte or a moment of one's choosing."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tests.machines import Machine

PIECE = 16_384


@dataclass(frozen=True)
class Fault:
    """What happens on the line. Bytes count from the last `set`, over all connections since."""

    after: int | None = None
    """Bytes in both directions together."""
    up: int | None = None
    """Bytes from ssh to sshd."""
    down: int | None = None
    """Bytes from sshd to ssh."""
    seconds: float | None = None
    """Since the connection was made."""
    how: Literal["cut", "silent"] = "cut"
    """`cut`: both ends are told; `silent`: nobody is, and nothing passes any more."""
    times: int | None = None
    """How many connections it befalls; None: all, so that a second try meets it at once."""
    rate: int | None = None
    """Bytes a second, each way."""
    latency: float = 0.0
    """Seconds that each piece is held back."""


@dataclass
class Line:
    """A proxy that listens at `port`. `set` takes effect at once, on what passes from then on."""

    host: Machine
    name: str
    """What ssh is to be given."""
    port: int = 0
    fault: Fault = field(default_factory=Fault)
    up: int = 0
    down: int = 0
    connections: int = 0
    befallen: int = 0
    _pairs: list[_Pair] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, fault: Fault | None = None) -> None:
        """From now on; whatever still hangs on the line is cut, and all counts start at nothing."""
        self.drop()
        with self._lock:
            self.fault = fault or Fault()
            self.up = self.down = self.connections = self.befallen = 0

    @property
    def total(self) -> int:
        return self.up + self.down

    def drop(self) -> None:
        """Cut all that is open."""
        for pair in list(self._pairs):
            pair.cut()
        self._pairs.clear()

    def hush(self) -> None:
        """Let nothing pass any more on what is open, and tell nobody."""
        for pair in self._pairs:
            pair.silent = True

    def allowance(self, way: Literal["up", "down"], size: int) -> int:
        """How many of `size` bytes may still pass."""
        fault = self.fault
        limits = [size]
        if fault.after is not None:
            limits.append(fault.after - self.total)
        limit = fault.up if way == "up" else fault.down
        if limit is not None:
            limits.append(limit - (self.up if way == "up" else self.down))
        return max(0, min(limits))


class _Pair:
    """One connection: both sockets, and a thread each way."""

    def __init__(self, line: Line, near: socket.socket, far: socket.socket) -> None:
        self.line, self.near, self.far = line, near, far
        self.silent = False
        fault = line.fault
        self.spared = fault.times is not None and line.connections > fault.times
        for source, sink, way in ((near, far, "up"), (far, near, "down")):
            threading.Thread(target=self._pump, args=(source, sink, way), daemon=True).start()
        if fault.seconds is not None and not self.spared:
            timer = threading.Timer(fault.seconds, self._befall)
            timer.daemon = True
            timer.start()

    def cut(self) -> None:
        """Both ends see a reset."""
        for end in (self.near, self.far):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()

    def _befall(self) -> None:
        self.line.befallen += 1
        if self.line.fault.how == "silent":
            self.silent = True
        else:
            self.cut()

    def _pump(self, source: socket.socket, sink: socket.socket, way: Literal["up", "down"]) -> None:
        line = self.line
        try:
            while piece := source.recv(PIECE):
                if line.fault.latency:
                    time.sleep(line.fault.latency)
                with line._lock:
                    may = len(piece) if self.spared else line.allowance(way, len(piece))
                    if not self.silent:
                        setattr(line, way, getattr(line, way) + may)
                if self.silent:
                    continue
                sink.sendall(piece[:may])
                if may < len(piece):
                    self._befall()
                    if not self.silent:
                        return
                if line.fault.rate:
                    time.sleep(len(piece) / line.fault.rate)
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.cut()


@contextlib.contextmanager
def line(host: Machine, name: str = "") -> Iterator[Line]:
    """A line to `host`, under an ssh name of its own."""
    with socket.create_server((("127.0.0.1"), 0)) as server:
        found = Line(host, name or f"{host.name}-line", server.getsockname()[1])
        host.also(found.name, "127.0.0.1", found.port)
        threading.Thread(target=_accept, args=(found, server), daemon=True).start()
        try:
            yield found
        finally:
            found.drop()


def _accept(found: Line, server: socket.socket) -> None:
    while True:
        try:
            near, _ = server.accept()
        except OSError:
            return
        try:
            far = socket.create_connection((found.host.address, found.host.port), timeout=10)
        except OSError:
            near.close()
            continue
        for end in (near, far):
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with found._lock:
            found.connections += 1
        found._pairs.append(_Pair(found, near, far))
