"""Who holds a file, a socket or a port."""

from __future__ import annotations

import os
import re
from typing import Iterable, NamedTuple

from patcher.agent.cleaning.model import Identity

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_LISTENS = "0A"


def of_files(wanted: set[Identity], pids: Iterable[int]) -> dict[Identity, list[int]]:
    """The processes that have one of the files open or mapped; those that cannot be looked into are not among them."""
    found: dict[Identity, list[int]] = {}
    if not wanted:
        return found
    for pid in pids:
        for one in (_open(pid) | _mapped(pid)) & wanted:
            found.setdefault(one, []).append(pid)
    return found


def of_sockets(pids: Iterable[int]) -> dict[int, list[int]]:
    """The processes that have each socket open, by the socket's inode."""
    found: dict[int, list[int]] = {}
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        for name in _names(folder):
            try:
                match = _SOCKET.fullmatch(os.readlink(os.path.join(folder, name)))
            except OSError:
                continue
            if match:
                found.setdefault(int(match.group(1)), []).append(pid)
    return found


class Port(NamedTuple):
    """A port that is listened at. `user` is the number of the user who opened it."""

    number: int
    inode: int
    user: int


def ports() -> list[Port]:
    """The TCP ports that are listened at in this network."""
    found = []
    for path in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        for line in _lines(path)[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS:
                found.append(Port(int(fields[1].rpartition(":")[2], 16), int(fields[9]), int(fields[7])))
    return found


def bound() -> dict[str, int]:
    """The paths of sockets that somebody has bound in this network, with their inodes."""
    found = {}
    for line in _lines("/proc/self/net/unix")[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7].startswith("/"):
            found[fields[7]] = int(fields[6])
    return found


def _open(pid: int) -> set[Identity]:
    folder = f"/proc/{pid}/fd"
    found = set()
    for name in _names(folder):
        try:
            status = os.stat(os.path.join(folder, name))
        except OSError:
            continue
        found.add((status.st_dev, status.st_ino))
    return found


def _mapped(pid: int) -> set[Identity]:
    found = set()
    for line in _lines(f"/proc/{pid}/maps"):
        fields = line.split(None, 5)
        if len(fields) > 5 and fields[4] != "0":
            major, _, minor = fields[3].partition(":")
            found.add((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
    return found


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().splitlines()
    except OSError:
        return []
