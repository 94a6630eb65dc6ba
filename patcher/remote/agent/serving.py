"""The agent's end of a connection: answer requests one after another until the client is gone.

`patcher.remote.channel` describes the protocol. A request that is being answered when the client goes is finished.
"""

from __future__ import annotations

import os
import queue
import select
import stat
import sys
import threading
import time
from importlib import import_module
from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping

from patcher.messages import Refusal, phrase, why
from patcher.remote.agent import frames

BEAT = 5.0
"""Seconds between signs of life: the client's at any time, the agent's while it answers."""
SILENCE = 45.0
"""Seconds without one after which the agent takes its client for gone; longer than ssh itself waits
(`patcher.remote.connection`: 20 s)."""
_PIECE = select.PIPE_BUF
"""Bytes that a pipe which is ready takes without blocking."""
_LARGE = 262_144
"""Bytes that a socket is given at once; it takes what it has room for."""


class Request:
    """One request, as the function that answers a verb gets it. `reply_body`, where it is set, goes with the answer."""

    def __init__(self, server: Server, number: int, verb: str, args: dict[str, Any], body: bytes) -> None:
        self._server = server
        self._number = number
        self.verb = verb
        self.args = args
        self.body = body
        self.reply_body = b""

    @property
    def kept(self) -> dict[str, Any]:
        """What lasts as long as the connection, by name: `root` and `begun` of `place`, `setup` of `setup`.

        What has a method `close` is closed at the end of the connection, the newest first.
        """
        return self._server.kept

    def emit(self, **event: Any) -> None:
        """Send an event before the answer. Nothing happens where nobody listens any more."""
        self.emit_body(b"", **event)

    def emit_body(self, body: bytes, **event: Any) -> None:
        """Send an event with a body."""
        self._server.send({"id": self._number, "event": event}, body)

    def gone(self) -> bool:
        """Whether the other side has hung up: what only watches or waits should then end."""
        return self._server.gone()


class Server:
    """The loop. One thread listens, so that a hang-up is noticed during a request; another gives signs of life.

    `verbs`: each verb and the function that answers it, as `module:function`; imported when it is first asked for.
    `following`: by verb, the one that is most often asked for next; imported while the client thinks.
    """

    def __init__(
        self, source: int, sink: int, verbs: Mapping[str, str], following: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._verbs = verbs
        self._following = following
        self._source = source
        self._sink = Sink(sink, self.gone)
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._heard = time.monotonic()
        self._ended = False
        self._answering = False
        self.kept: dict[str, Any] = {}

    def run(self) -> None:
        """Answer requests as they come, until the client has hung up or been silent for `SILENCE` seconds."""
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        try:
            while True:
                try:
                    item = self._inbox.get(timeout=1.0)
                except queue.Empty:
                    item = None if self.gone() else ()
                if item is None or self.gone():
                    break
                if item:
                    self._answering = True
                    self._answer(*item)
                    self._answering = False
                    self._load_following(item[0]["verb"])
        finally:
            self._close()

    def answer_all(self, requests: Iterable[tuple[dict[str, Any], bytes]]) -> None:
        """Answer requests that have come all at once, from a client that sends no beats: a Ray cluster asks so."""
        self._heard = float("inf")
        try:
            for message, body in requests:
                self._answer(message, body)
        finally:
            self._close()

    def send(self, message: dict[str, Any], body: bytes = b"") -> None:
        """Send a message whole, from any thread; lost where nobody listens any more."""
        with self._sending:
            if self._ended:
                return
            try:
                self._sink.write(frames.head(message, len(body)))
                self._sink.write(body)
            except OSError:
                self._ended = True

    def gone(self) -> bool:
        return self._ended or time.monotonic() - self._heard > SILENCE

    def hang_up(self) -> None:
        """Take the other side as gone: what is under way is finished, and nothing else is begun."""
        self._ended = True
        self._inbox.put(None)

    def _listen(self) -> None:
        splitter = frames.Splitter()
        try:
            while True:
                piece = os.read(self._source, 1 << 20)
                if not piece:
                    break
                self._heard = time.monotonic()
                splitter.feed(piece)
                found = splitter.next()
                while found is not None:
                    if found[0].get("verb") != "beat":
                        self._inbox.put(found)
                    found = splitter.next()
        except (OSError, ValueError):
            pass
        self.hang_up()

    def _beat(self) -> None:
        while not self._ended:
            time.sleep(BEAT)
            if self._answering:
                self.send({"id": 0, "event": {}})

    def _answer(self, message: dict[str, Any], body: bytes) -> None:
        number = message["id"]
        request = Request(self, number, message["verb"], message.get("args", {}), body)
        try:
            module, _, name = self._verbs[message["verb"]].partition(":")
            result = getattr(import_module(module), name)(request)
            self.send({"id": number, "result": result}, request.reply_body)
        except Refusal as refusal:
            content = {"kind": refusal.kind, "title": refusal.title, "cause": refusal.cause, "advice": refusal.advice}
            self.send({"id": number, "refusal": content})
        except Exception as error:
            if isinstance(error, OSError) and isinstance(error.errno, int):
                self.send({"id": number, "refusal": _refused(error)})
            else:
                self.send({"id": number, "bug": _trace()})

    def _load_following(self, verb: str) -> None:
        if verb in self._following and self._inbox.empty():
            import_module(self._verbs[self._following[verb]].partition(":")[0])

    def _close(self) -> None:
        """Close what was kept, the newest first, whatever becomes of each."""
        for kept in reversed(list(self.kept.values())):
            try:
                if hasattr(kept, "close"):
                    kept.close()
            except Exception:
                print(_trace(), file=sys.stderr, flush=True)


def _refused(error: OSError) -> dict[str, Any]:
    """What the system refuses is no bug: for example no descriptors left, or a folder that may not be read."""
    cause = why(error)
    if error.filename is not None:
        cause = phrase("{file}: {reason}", file=str(error.filename), reason=cause)
    return {"kind": "machine", "title": phrase("the machine refuses what is needed"), "cause": cause, "advice": None}


def _trace() -> str:
    """The exception that is being handled."""
    import traceback  # Costs 2 ms, and is hardly ever needed.

    return traceback.format_exc()


class Sink:
    """Writes to a pipe or socket that nobody may read any more: in each second without progress `gone` is asked.

    The descriptor stays as it is, blocking; so no more is written at once than it takes without blocking.
    """

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
        """Write all of `content`. Raises OSError where nobody reads it any more."""
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
