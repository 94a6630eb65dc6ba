"""What /proc says of one process: its identity, what it waits for, what may not be read, and its connections to others.

Connections are pipes and the processes at their ends, sockets and their peers, file locks and their holders.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import struct
from typing import Any, Iterable

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process
from patcher.logs.agent.writers import descriptors, is_open_for_writing
from patcher.watch.agent.members import is_system

_CALLS = (
    ("read", (0,), (63,)),
    ("write", (1,), (64,)),
    ("poll", (7, 271), (73,)),
    ("ioctl", (16,), (29,)),
    ("pread", (17,), (67,)),
    ("readv", (19,), (65,)),
    ("writev", (20,), (66,)),
    ("select", (23, 270), (72,)),
    ("nanosleep", (35, 230), (101, 115)),
    ("connect", (42,), (203,)),
    ("accept", (43, 288), (202, 242)),
    ("sendto", (44,), (206,)),
    ("recvfrom", (45,), (207,)),
    ("sendmsg", (46,), (211,)),
    ("recvmsg", (47,), (212,)),
    ("wait", (61, 247), (95, 260)),
    ("fcntl", (72,), (25,)),
    ("flock", (73,), (32,)),
    ("fsync", (74,), (82,)),
    ("sigsuspend", (130,), (133,)),
    ("futex", (202, 449), (98, 449)),
    ("semop", (220,), (192,)),
    ("epoll", (232, 281, 441), (22, 441)),
    ("open", (257,), (56,)),
)
"""System calls in which a process may wait: the name, its numbers on x86-64, and those on ARM.

Calls that do the same have one name: `poll` and `ppoll`, `clock_nanosleep` and `nanosleep`.
"""
ON_FILE = (
    *("read", "write", "pread", "readv", "writev", "ioctl", "fsync", "flock", "fcntl"),
    *("connect", "accept", "sendto", "recvfrom", "sendmsg", "recvmsg"),
)
"""Calls whose first argument is a file descriptor."""


def call_name(number: int) -> str | None:
    """The name of a system call on this machine; None for one that is not in the table."""
    numbers = 2 if platform.machine() in ("aarch64", "arm64") else 1
    return next((call[0] for call in _CALLS if number in call[numbers]), None)


_LOCK = re.compile(
    r"\d+: (?P<waits> *-> )?(?P<kind>FLOCK|POSIX|OFDLCK|LEASE)\s+\S+\s+\S+\s+(?P<pid>-?\d+) (?P<file>\S+:\d+) "
)
_STATES = {"01": "established", "02": "connecting", "0A": "listening", "08": "closed by the peer"}


def pipe_ends(members: Iterable[int], wanted: set[str]) -> dict[str, list[list[Any]]]:
    """The processes that have a pipe or a socket open: target -> [pid, whether it writes]."""
    found: dict[str, list[list[Any]]] = {}
    for pid in members:
        for number, target in descriptors(pid):
            if target in wanted:
                found.setdefault(target, []).append([pid, is_open_for_writing(pid, number)])
    return found


def socket_peers(pid: int, wanted: set[str]) -> dict[str, dict[str, str]]:
    """The TCP connections of a process: socket -> address and state of the peer."""
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


def file_locks(members: Iterable[int]) -> list[dict[str, Any]]:
    """The file locks that a member holds or waits for: path, holders with their names, and the pids that wait."""
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
    """The path of a file that a process has open, by the number of the file in /proc/locks."""
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


VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RAY_LOCAL_WORLD_SIZE", "GROUP_RANK", "WG_PREFIX"),
    *("MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "RAY_JOB_ID", "VLLM_DP_RANK"),
)
"""Environment variables that are read; no others are."""
LONGEST = 300
"""Characters of a command line that are kept. Set by hand: what tells processes apart is at its beginning."""
_TRACE = 1 << 19
"""CAP_SYS_PTRACE."""


def process_facts(process: Process) -> dict[str, Any]:
    """All that /proc says of a process without touching it."""
    pid = process.pid
    status = processes.status(pid)
    shown = title(pid)
    return {
        "pid": pid,
        "parent": process.parent,
        "start": process.start,
        "name": process.name,
        "title": shown,
        "state": status.get("State", "?")[:1],
        "python": is_python(pid, process.name, shown),
        "system": is_system(process.name, shown),
        "env": processes.variables(pid, VARIABLES),
        "waits": _waits(pid),
        "kernel": _kernel(pid),
        "closed": _why_closed(pid, status),
    }


def title(pid: int) -> str:
    """The beginning of a process's command line, or of the title that it gave itself."""
    return processes.title_of(pid)[:LONGEST]


def is_python(pid: int, name: str, shown: str) -> bool:
    """Whether a Python interpreter runs in the process, as far as is known."""
    try:
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy")):
            return True
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
            return any("libpython3" in line for line in stream)
    except OSError:
        first = os.path.basename(shown.partition(" ")[0])
        return first.startswith("python") or name.startswith("python") or shown.startswith(("ray::", "VLLM::"))


def _why_closed(pid: int, status: dict[str, str]) -> str:
    """Why this process may not read the memory of another: user, capabilities, yama, closed; "" if it may."""
    own = processes.status(os.getpid())
    if int(own.get("CapEff", "0"), 16) & _TRACE:
        return ""
    if status.get("Uid", "").split() != own.get("Uid", "").split():
        return "user"
    if int(status.get("CapPrm", "0"), 16) & ~int(own.get("CapPrm", "0"), 16):
        return "capabilities"
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as stream:
            if stream.read().strip() not in ("", "0"):
                return "yama"
    except OSError:
        pass
    return "" if os.access(f"/proc/{pid}/environ", os.R_OK) else "closed"


def _waits(pid: int) -> dict[str, Any]:
    """Where the main thread is in the kernel: `wchan`, the system call, and the file that the call is about."""
    wait: dict[str, Any] = {"wchan": _line(pid, "wchan").strip("0"), "call": None, "file": None}
    parts = _line(pid, "syscall").split()
    if len(parts) > 2 and parts[0].lstrip("-").isdigit():
        wait["call"] = call_name(int(parts[0]))
        if wait["call"] in ON_FILE:
            try:
                wait["file"] = os.readlink(f"/proc/{pid}/fd/{int(parts[1], 16)}")
            except OSError:
                pass
    return wait


def _kernel(pid: int) -> list[str]:
    """The kernel stack of the main thread, innermost first; empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/stack", encoding="ascii", errors="replace") as stream:
            return re.findall(r"\] ([\w.]+)\+", stream.read())[:12]
    except OSError:
        return []


def _line(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="ascii", errors="replace") as stream:
            return stream.read(200).strip()
    except OSError:
        return ""
