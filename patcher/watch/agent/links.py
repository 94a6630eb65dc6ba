"""What ties processes to each other: pipes and their ends, sockets and their peers, file locks and their holders."""

from __future__ import annotations

import os
import re
import socket
import struct
from typing import Any, Iterable

from patcher.jobs.agent import processes
from patcher.watch.agent.finding import descriptors, writes

_LOCK = re.compile(
    r"\d+: (?P<waits> *-> )?(?P<kind>FLOCK|POSIX|OFDLCK|LEASE)\s+\S+\s+\S+\s+(?P<pid>-?\d+) (?P<file>\S+:\d+) "
)
_STATES = {"01": "established", "02": "connecting", "0A": "listening", "08": "closed by the peer"}


def ends(members: Iterable[int], wanted: set[str]) -> dict[str, list[list[Any]]]:
    """The processes that hold the other end of a pipe or share a socket: target -> [pid, whether it writes]."""
    found: dict[str, list[list[Any]]] = {}
    for pid in members:
        for number, target in descriptors(pid):
            if target in wanted:
                found.setdefault(target, []).append([pid, writes(pid, number)])
    return found


def peers(pid: int, wanted: set[str]) -> dict[str, dict[str, str]]:
    """TCP connections behind sockets of a process: target -> where to, and in what state."""
    found: dict[str, dict[str, str]] = {}
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}", encoding="ascii") as stream:
                rows = [line.split() for line in stream][1:]
        except OSError:
            continue
        for row in rows:
            target = f"socket:[{row[9]}]"
            if target in wanted:
                found[target] = {"peer": _address(row[2]), "state": _STATES.get(row[3], row[3])}
    return found


def connecting(pid: int) -> list[str]:
    """Addresses that a process tries to reach and that do not answer."""
    wanted = {target for _, target in descriptors(pid) if target.startswith("socket:")}
    return sorted({told["peer"] for told in peers(pid, wanted).values() if told["state"] == "connecting"})


def locks(members: Iterable[int]) -> list[dict[str, Any]]:
    """File locks that a member waits for or holds: path, holder with its name, and who waits."""
    own = set(members)
    held: dict[str, list[int]] = {}
    waiting: dict[str, list[int]] = {}
    try:
        with open("/proc/locks", encoding="ascii") as stream:
            rows = [_LOCK.match(line) for line in stream]
    except OSError:
        return []
    for row in rows:
        if row is not None:
            (waiting if row["waits"] else held).setdefault(row["file"], []).append(int(row["pid"]))
    found = []
    for file, pids in held.items():
        waiters = [pid for pid in waiting.get(file, []) if pid in own]
        path = next((path for pid in (*waiters, *pids) for path in [_path(pid, file)] if path), None)
        if waiters or (path is not None and own & set(pids)):
            names = {str(pid): process.name for pid in pids for process in [processes.one(pid)] if process is not None}
            found.append({"path": path, "holders": names, "waiters": waiters})
    return found


def _path(pid: int, file: str) -> str | None:
    """The path of a file that a process has open, by its number in /proc/locks."""
    inode = int(file.rpartition(":")[2])
    for number, target in descriptors(pid):
        if target.startswith("/"):
            try:
                if os.stat(f"/proc/{pid}/fd/{number}").st_ino == inode:
                    return target
            except OSError:
                continue
    return None


def _address(text: str) -> str:
    host, _, port = text.partition(":")
    packed = bytes.fromhex(host)
    words = struct.pack(f">{len(packed) // 4}I", *struct.unpack(f"<{len(packed) // 4}I", packed))
    family = socket.AF_INET if len(words) == 4 else socket.AF_INET6
    shown = socket.inet_ntop(family, words)
    return f"{shown.replace('::ffff:', '')}:{int(port, 16)}"
