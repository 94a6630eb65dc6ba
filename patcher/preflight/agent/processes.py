"""Processes below one that we started: who they are, whether they get on, and their end, whatever they have become."""

from __future__ import annotations

import os
import signal
import time

from patcher.jobs.agent.processes import TICKS, descendants, io_counters, table, variables

TAG = "UKY_PATCH_CHECK"
"""A variable of the environment that every process below a check inherits."""
SHARE = 0.25
"""The share of a measured interval from which on a process counts as at work. Set by hand: one that polls has less."""
READS = 5
"""Reads a second that count as work as well: importing from a network disk is little else. Set by hand."""


def below(pid: int) -> list[int]:
    """`pid` and its descendants that still descend from it, those that are alive."""
    return sorted(descendants([pid], table()))


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
        """Take one sample of whether something runs or waits for a disk."""
        self._looks += 1
        self._busy += any(_stat(pid)[:1] in (["R"], ["D"]) for pid in below(self._pid))

    def at_work(self) -> bool:
        """Whether it got on since the beginning: then it is slow and does not hang."""
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
                reads += int(fields[9]) + io_counters(pid).get("syscr", 0)
        return ticks / TICKS, reads


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
    return [pid for pid in table() if pid != os.getpid() and variables(pid, (TAG,)).get(TAG) == tag]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: state, parent, …; none where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
