"""Processes below one that we started: who they are, whether they get on, and their end, whatever they have become."""

from __future__ import annotations

import os
import signal
import time

TAG = "UKY_PATCH_CHECK"
"""A variable of the environment that every process below a check inherits."""
_TICKS = os.sysconf("SC_CLK_TCK")
SHARE = 0.25
"""The share of a stretch of time from which on a process counts as at work."""
READS = 5
"""Reads a second that count as work as well."""


def below(pid: int) -> list[int]:
    """`pid` and its descendants that still descend from it."""
    children: dict[int, list[int]] = {}
    for other in _all():
        fields = _stat(other)
        if fields:
            children.setdefault(int(fields[1]), []).append(other)
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


class Progress:
    """Watches a process for a while, to tell one that is slow from one that hangs.

    Work is time on a CPU, waiting for a turn at the CPU or the disk, and files that are read: its own, and of what is
    below it.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = time.monotonic()
        self._first = self._seen()
        self._looks = 0
        self._busy = 0

    def look(self) -> None:
        self._looks += 1
        self._busy += any(_stat(pid)[:1] in (["R"], ["D"]) for pid in below(self._pid))

    def at_work(self) -> bool:
        spent = max(0.1, time.monotonic() - self._began)
        cpu, reads = (now - then for now, then in zip(self._seen(), self._first))
        return cpu > SHARE * spent or self._busy > SHARE * self._looks or reads > READS * spent

    def _seen(self) -> tuple[float, int]:
        """Seconds of CPU, and calls that read and page faults that went to the disk."""
        ticks = reads = 0
        for pid in below(self._pid):
            fields = _stat(pid)
            if fields:
                ticks += int(fields[11]) + int(fields[12])
                reads += int(fields[9]) + _reads(pid)
        return ticks / _TICKS, reads


def _reads(pid: int) -> int:
    lines = _read(f"/proc/{pid}/io").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("syscr:"))


def end(pid: int, tag: str) -> None:
    """Kill the process, its group, its descendants, and whoever else carries the tag."""
    targets = [target for target in below(pid) if target != pid]
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    for target in targets + tagged(tag):
        try:
            os.kill(target, signal.SIGKILL)
        except OSError:
            pass


def tagged(tag: str) -> list[int]:
    """The processes whose environment carries the tag. Only this user's can be read."""
    wanted = f"{TAG}={tag}".encode()
    own = os.getpid()
    found = []
    for pid in _all():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read().split(b"\0") and pid != own:
                    found.append(pid)
        except OSError:
            continue
    return found


def _all() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: state, parent, …"""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
