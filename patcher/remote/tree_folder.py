"""Open the folder for the tree on a host, and lock it against a second command that writes there.

The lock is held by the agent. Where the command that it works for was killed on this machine, the agent needs a while
to notice. The lock's note names the process of that command, so the next one here can tell that waiting is worth it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patcher.errors import UsageError
from patcher.remote.channel import RefusedError, understood
from patcher.remote.connection import Connection
from patcher.remote.survey import TreeFolder, parse_tree_folder


def open_tree_folder(connection: Connection, folder_name: str, purpose: str | None) -> TreeFolder:
    """Open the folder for the tree: the host's `path`, else one named `folder_name` in the home there.

    With a purpose ("migrate", "render") the folder is made if it is missing, and locked until the connection ends; if
    nothing came into it, it is removed then. Without a purpose it is only looked at.

    Raises:
        UsageError: the path cannot hold a tree.
        RefusedError: of kind `locked`: another migration is under way; `unwritable`: the folder cannot be written to;
            `unlockable`: its file system has no locks.
        CutError: the connection ended.
    """
    owner: dict[str, Any] = {}

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        owner.update(event.get("owner", {}))

    args: dict[str, Any] = {
        "path": connection.host.path,
        "name": folder_name,
        "purpose": purpose,
        "run": connection.channel.run,
        "who": _user(),
        "machine": platform.node(),
        "client": _client(),
    }
    try:
        answer = connection.channel.ask("begin", on_event=on_event, over=connection.channel.ended_runs(), **args)
    except RefusedError as refused:
        if refused.kind == "path":
            raise UsageError(refused.title, cause=refused.cause, advice=refused.advice) from refused
        if refused.kind != "locked" or not _is_orphan(owner):
            raise
        answer = connection.channel.ask("begin", over=[owner["run"]], **args)
    return understood(lambda: parse_tree_folder(answer.values))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _client() -> Mapping[str, Any]:
    """This process, for the lock's note: a later one on this machine can then tell whether it has ended."""
    return {"space": _space(), "pid": os.getpid()}


def _space() -> str:
    """Names what a process number is unique in: a start of a kernel, and a PID namespace. Empty where unknown."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _is_orphan(owner: Mapping[str, Any]) -> bool:
    """Whether the lock is held for a process of this machine that has ended, so that its agent will end too."""
    client = owner.get("client")
    if not isinstance(client, dict) or not client.get("space") or client.get("space") != _space():
        return False
    pid = client.get("pid")
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return bool(owner.get("run"))
    except OSError:
        return False
    return False
