"""The frames of the agent's protocol: one line of JSON, then as many bytes as its key `body` says.

`{"id": 7, "result": {}, "body": 3}\\nabc` is a message with a body of three bytes. `patcher.remote.channel` describes
which messages there are. Both ends use this module.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Dict

from patcher.worktree.json_text import parse_json

GREETING = b"uky-patch agent 1 "
"""What the agent sends first, with the nonce that it was given; a login shell may have printed something before it."""

MOST_LINE = 64 << 20
"""The most bytes of a message without its body; the manifest of a tree of 50,000 files has 10 MB."""
MOST_BODY = 1 << 30
"""The most bytes of a body. What is larger is sent in pieces."""

Message = Dict[str, Any]


def head(message: Message, size: int) -> bytes:
    """The line before a body of `size` bytes.

    It is ASCII, so that lone surrogates survive: a file name that is no UTF-8 has them (`os.fsdecode(b"\\xff")`).
    """
    return json.dumps(dict(message, body=size)).encode("ascii") + b"\n"


def write(stream: BinaryIO, message: Message, body: bytes = b"") -> None:
    """Send one message whole."""
    stream.write(head(message, len(body)) + body)
    stream.flush()


def read(stream: BinaryIO) -> tuple[Message, bytes] | None:
    """The next message and its body; None at the end of the stream, also where it ends within a message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    message = parse_json(line)
    size = int(message.pop("body"))
    body = stream.read(size) if size else b""
    return (message, body) if len(body) == size else None


def read_all(content: bytes) -> list[tuple[Message, bytes]]:
    """The messages of a stream that has ended, but for one that is not whole. Raises ValueError for what is none."""
    splitter = Splitter()
    splitter.feed(content)
    found = []
    message = splitter.next()
    while message is not None:
        found.append(message)
        message = splitter.next()
    return found


class Splitter:
    """Puts messages together from bytes that come in pieces of any size: `feed` each piece, then call `next`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        """Bytes of the buffer that are known to hold no newline: a long line is not searched again with each piece."""
        self._message: Message | None = None
        """A message whose body has not come whole; `_size` is that of the body."""
        self._size = 0

    def feed(self, piece: bytes) -> None:
        self._buffer += piece

    def next(self) -> tuple[Message, bytes] | None:
        """The next message that has come whole. Raises ValueError for what is none."""
        if self._message is None:
            end = self._buffer.find(b"\n", self._searched)
            if (len(self._buffer) if end < 0 else end) > MOST_LINE:
                raise ValueError("a line without end")
            if end < 0:
                self._searched = len(self._buffer)
                return None
            message = parse_json(bytes(self._buffer[:end]))
            if not isinstance(message, dict) or type(message.get("body")) is not int:
                raise ValueError("no message")
            if not 0 <= message["body"] <= MOST_BODY:
                raise ValueError("a body of no possible size")
            self._size = message.pop("body")
            self._message = message
            self._searched = 0
            del self._buffer[: end + 1]
        if len(self._buffer) < self._size:
            return None
        found = self._message, bytes(self._buffer[: self._size])
        del self._buffer[: self._size]
        self._message = None
        return found
