"""What the agent tells of processes, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patcher.preflight.agent.stacks import threads as dumped
from patcher.watch.stacks.folding import frame, own_part
from patcher.watch.stacks.model import Lock, Process, Taken, Thread
from patcher.watch.stacks.ranks import ranked


def taken(told: Mapping[str, Any], host: str, root: str = "") -> Taken:
    """The answer of `stacks`; `host` is what the machine is called here, `root` where the tree is on it."""
    found = ranked([process(one, host, root) for one in told["processes"]], told["processes"])
    locks = [
        Lock(one["path"], {int(pid): name for pid, name in one["holders"].items()}, tuple(one["waiters"]))
        for one in told["locks"]
    ]
    return Taken(host, found, locks, told["spy"])


def process(told: Mapping[str, Any], host: str, root: str = "") -> Process:
    """One process; role and rank are told apart from all of them later."""
    return Process(
        pid=told["pid"],
        host=host,
        title=told["title"] or told["name"],
        role="system" if told["system"] else "worker" if told["python"] else "helper",
        parent=told["parent"],
        state=told["state"],
        cpu=told["cpu"],
        memory=told["memory"],
        how=told.get("how", "proc"),
        threads=_threads(told, root),
        waits=told["waits"],
        kernel=tuple(told["kernel"]),
        connecting=tuple(told.get("connecting") or ()),
        closed=told["closed"],
        failed=tuple((name, why) for name, why in told.get("failed") or ()),
    )


def _threads(told: Mapping[str, Any], root: str) -> tuple[Thread, ...]:
    match told.get("stack"):
        case str() as text:
            return of_faulthandler(text, root)
        case list() as found:
            return of_spy(found, root)
        case _:
            return ()


def of_spy(threads: Sequence[Mapping[str, Any]], root: str = "") -> tuple[Thread, ...]:
    """Threads as py-spy gives them, the agent having left out what is not needed."""
    return tuple(
        Thread(
            own_part([frame(path, name, line, root) for path, name, line in one["frames"]]),
            one["name"],
            one["main"],
            one["active"],
        )
        for one in threads
    )


def of_faulthandler(text: str, root: str = "") -> tuple[Thread, ...]:
    """Threads of a dump that faulthandler has written; the main one is the last."""
    found = dumped(text)
    return tuple(
        Thread(
            own_part([frame(path, function, int(line), root) for path, line, function in one.frames]),
            one.name or ("MainThread" if number == len(found) else ""),
            number == len(found),
        )
        for number, one in enumerate(found, 1)
    )
