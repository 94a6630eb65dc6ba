"""The agent's verbs called in this process, and faults at the calls by which they change the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from patcher.agent import VERBS
from patcher.i18n.decoding import heard
from patcher.messages import Refusal
from patcher.remote.channel import Answer, Channel, RefusedError
from patcher.remote.connection import Connection
from patcher.remote.host import HERE, Host
from patcher.worktree.host import disk

CHANGING = frozenset(
    "write fsync replace link unlink mkdir rmdir symlink chmod fchmod chown ftruncate utime".split()  # noqa: SIM905
)


class Direct:
    """Answers as a channel does, with the tree at `root` opened and locked."""

    def __init__(self, root: Path) -> None:
        self.kept: dict[str, Any] = {"root": str(root), "begun": "locked"}
        self.verb, self.args, self.body, self.reply_body = "", {}, b"", b""
        self.emit: Callable[..., None] = lambda **_: None

    def ask(self, verb: str, *, body: bytes = b"", on_event: Any = lambda *_: None, **args: Any) -> Answer:
        self.verb, self.args, self.body = verb, json.loads(json.dumps(args)), body
        self.emit = lambda **event: on_event(event, b"")
        module, _, name = VERBS[verb].partition(":")
        try:
            return Answer(json.loads(json.dumps(getattr(import_module(module), name)(self))))
        except Refusal as said:
            raise RefusedError(said.kind, heard(said.title), heard(said.cause), heard(said.advice)) from None


def direct(root: Path) -> Connection:
    return Connection(Host(HERE, HERE), cast("Channel", Direct(root)))


class Faults:
    """Stands in for `os`: at call number `at` that changes the disk, counted from 0, `strike` is called.

    A write is struck after half of its bytes.
    """

    def __init__(self, at: int | None, strike: Callable[[], None]) -> None:
        self.at, self.strike, self.calls = at, strike, []

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != "open" and name not in CHANGING:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **options)
            self.calls.append(name)
            if len(self.calls) - 1 == self.at:
                if name == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                self.strike()
            return real(*arguments, **options)

        return call


@contextmanager
def faults(at: int | None = None, strike: Callable[[], None] = lambda: None) -> Iterator[Faults]:
    stand_in = Faults(at, strike)
    before, disk.os = disk.os, cast("Any", stand_in)
    try:
        yield stand_in
    finally:
        disk.os = before
