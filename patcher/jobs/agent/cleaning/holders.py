"""Who holds a file, a socket or a port."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple

from patcher.jobs.agent.traces import mapped_in, open_in

_LISTENS = "0A"


class Port(NamedTuple):
    """A port that is listened at. `user` is the number of the user who opened it."""

    number: int
    inode: int
    user: int


def holders(pids: Iterable[int]) -> dict[Any, list[int]]:
    """The processes that hold each file, by device and inode, and each socket, by inode.

    Those that cannot be looked into, another user's above all, are not among them.
    """
    found: dict[Any, list[int]] = {}
    for pid in pids:
        for key in open_in(pid) | mapped_in(pid):
            found.setdefault(key, []).append(pid)
    return found


def ports() -> list[Port]:
    """The TCP ports that are listened at in this network."""
    found = []
    for path in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(path, encoding="ascii") as stream:
                lines = stream.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS:
                found.append(Port(int(fields[1].rpartition(":")[2], 16), int(fields[9]), int(fields[7])))
    return found
