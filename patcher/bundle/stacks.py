"""Stacks of a run that lives, as sections of the archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patcher.bundle.model import Section
from patcher.errors import HostError
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.remote.connection import Connection

_VERB = "stacks"
_TITLE = 200
"""Characters of a command line up to which it is shown: a longer one may have been cut within a secret."""


def stacks(connection: Connection, state: Mapping[str, Any]) -> list[Section]:
    """A section with the stacks of the run's processes; none where it has ended, or they cannot be taken."""
    if not state["processes"]:
        return []
    order: dict[str, Any] = {"pids": [[process["pid"], process["start"]] for process in state["processes"]]}
    if state["job"] is not None:
        order = {"job": state["job"]["id"]}
    try:
        told = connection.channel.ask(_VERB, order=order).values
    except HostError:
        return []
    text = "\n".join(line for process in told["processes"] for line in _lines(process))
    return [Section("stacks.txt", phrase("where each of its processes stood"), text + "\n")] if text else []


def _lines(process: Mapping[str, Any]) -> Iterator[str]:
    title = process.get("title") or ""
    named = title if 0 < len(title) <= _TITLE else process["name"]
    yield f"process {process['pid']} ({named}), state {process['state']}, by {process.get('how', 'proc')}"
    stack = process.get("stack")
    if isinstance(stack, str):
        yield stack
    elif isinstance(stack, list):
        for thread in stack:
            yield f"  thread {thread['name']}"
            yield from (f"    {name} ({path}:{line})" for path, name, line in thread["frames"])
    else:
        yield f"  waits: {process.get('waits')}"
        yield from (f"  {line}" for line in process.get("kernel", ()))
    yield ""
