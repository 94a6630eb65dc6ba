"""The agent's verbs called in this process, so that `tests.tree.faults` strike there too."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from patcher.agent import VERBS
from patcher.i18n.codec import decode
from patcher.messages import Refusal
from patcher.remote.channel import Answer, Channel, RefusedError
from patcher.remote.connection import Connection
from patcher.remote.host import HERE, Host


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
            raise RefusedError(said.kind, decode(said.title), decode(said.cause), decode(said.advice)) from None


def direct(root: Path) -> Connection:
    return Connection(Host(HERE, HERE), cast("Channel", Direct(root)))
