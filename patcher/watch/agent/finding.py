"""Which processes belong to what is watched: a job, some processes, or whatever writes a log."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process, Table
from patcher.watch.agent import rays

Order = Dict[str, Any]
"""What is looked for. `job`: what `folder.look` tells; `pids`: numbers, each with its start; `log`: a file's path;
`ray`: a cluster's address; `mark`: a job's id. Each may be missing."""


class Members:
    """The processes found so far. One that was found stays until it ends, also when its parent has gone."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._found: dict[int, Process] = {}
        self._marks: dict[tuple[int, int], str | None] = {}

    def all(self) -> list[Process]:
        """A look at all processes of this machine: those that belong, as they are now."""
        everything = processes.table()
        for gone in [key for key in self._marks if key[0] not in everything or everything[key[0]].start != key[1]]:
            del self._marks[gone]
        seeds = {pid for pid, old in self._found.items() if pid in everything and everything[pid].start == old.start}
        seeds |= set(self._seeds(everything))
        if self._order.get("log") and not seeds:
            seeds = writers(self._order["log"], everything) - _above(everything, set())
        found = processes.descendants(seeds, everything)
        found |= processes.descendants(self._marked(found, everything), everything)
        found |= processes.descendants(rays.workers(found, self._order.get("ray"), everything), everything)
        found -= self._never(seeds, everything)
        self._found = {pid: everything[pid] for pid in found}
        return [self._found[pid] for pid in sorted(found)]

    def known(self) -> list[Process]:
        """Those that were found, as they are now; a look at them alone."""
        now = [processes.one(pid) for pid in self._found]
        self._found = {one.pid: one for one in now if one is not None and one.start == self._found[one.pid].start}
        return [self._found[pid] for pid in sorted(self._found)]

    def _seeds(self, everything: Table) -> Iterable[int]:
        job = self._order.get("job")
        if job is not None:
            leader = job.get("process")
            if leader is not None and processes.alive(leader):
                yield leader["pid"]
                yield from (one.pid for one in everything.values() if one.session == leader["pid"])
        for pid, start in self._order.get("pids") or ():
            if pid in everything and everything[pid].start == start:
                yield pid

    def _marked(self, found: set[int], everything: Table) -> set[int]:
        """Those with the mark of the job, or with the mark of one that was found."""
        wanted = {self._mark(everything[pid]) for pid in found} - {None}
        if self._order.get("job"):
            wanted.add(self._order["job"]["id"])
        if self._order.get("mark"):
            wanted.add(self._order["mark"])
        if not wanted:
            return set()
        return {pid for pid, process in everything.items() if self._mark(process) in wanted}

    def _mark(self, process: Process) -> str | None:
        key = (process.pid, process.start)
        if key not in self._marks:
            self._marks[key] = processes.mark_of(process.pid)
        return self._marks[key]

    def _never(self, seeds: set[int], everything: Table) -> set[int]:
        """This program with what it has started and those that wait for it, and the one that only watches the job."""
        runner = (self._order.get("job") or {}).get("runner")
        found = {runner["pid"]} if runner is not None and processes.alive(runner) else set()
        found |= processes.descendants([os.getpid()], everything) - processes.descendants(seeds, everything)
        return found | _above(everything, seeds)


def _above(everything: Table, seeds: set[int]) -> set[int]:
    """Those that this program descends from, up to one of `seeds`."""
    found: set[int] = set()
    above = everything.get(os.getpid())
    while above is not None and above.parent not in seeds:
        found.add(above.parent)
        above = everything.get(above.parent)
    return found


def writers(path: str, everything: Table) -> set[int]:
    """The processes that write a log, or write into the pipe of a `tee` that does."""
    try:
        found = os.stat(path)
    except OSError:
        return set()
    wanted = (found.st_dev, found.st_ino)
    holders, pipes = set(), set()
    written: dict[int, set[str]] = {}
    for pid in everything:
        for number, target in descriptors(pid):
            if target.startswith("pipe:") and writes(pid, number):
                written.setdefault(pid, set()).add(target)
            elif target.startswith("/") and _is(pid, number, wanted) and writes(pid, number):
                holders.add(pid)
                pipes |= {other for index, other in descriptors(pid) if index == 0 and other.startswith("pipe:")}
    return holders | {pid for pid, ends in written.items() if ends & pipes}


def descriptors(pid: int) -> list[tuple[int, str]]:
    """What a process has open: number and target. Empty where that cannot be read."""
    folder = f"/proc/{pid}/fd"
    found = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        try:
            found.append((int(name), os.readlink(f"{folder}/{name}")))
        except OSError:
            continue
    return found


def _is(pid: int, number: int, wanted: tuple[int, int]) -> bool:
    try:
        found = os.stat(f"/proc/{pid}/fd/{number}")
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == wanted


def writes(pid: int, number: int) -> bool:
    """Whether a descriptor of a process is open for writing."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as stream:
            flags = next((line for line in stream if line.startswith("flags:")), "flags: 0")
    except OSError:
        return False
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
