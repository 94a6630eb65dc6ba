"""Find the processes that belong to what is watched: a job, given processes, the writers of a log, workers of Ray.

If the Ray cluster was there before the job, Ray's workers are no children of the job. They are found by the session and
job id in the name of the log that the driver writes, and by the environment variables that Ray gives its workers.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Dict, Iterable

from patcher.jobs.agent import folder, processes
from patcher.jobs.agent.processes import Process, Table, title_of, variables
from patcher.logs.agent.writers import descriptors, is_open_for_writing, writers
from patcher.remote.agent import place

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

_SYSTEM = ("raylet", "gcs_server")
_SERVICES = (
    *("/ray/dashboard/", "/ray/autoscaler/", "/ray/_private/log_monitor.py", "/ray/_private/runtime_env/"),
    *("ray::DashboardAgent", "ray::RuntimeEnvAgent"),
)
_ADDRESS = re.compile(r"--gcs-address=(?P<address>\S+)")
_DRIVER = re.compile(r"/(?P<session>session_[^/]+)/logs/python-core-driver-(?P<job>[0-9a-f]{8})")


def is_system(name: str, title: str) -> bool:
    """Whether a process belongs to Ray itself, and does no work of the job."""
    return name in _SYSTEM or any(text in title for text in _SERVICES)


def ray_workers(found: Iterable[int], address: str | None, everything: Table) -> set[int]:
    """The workers that serve the drivers among `found` in clusters that were there before, and those of the cluster at
    `address`."""
    raylets = {pid: title_of(pid) for pid, process in everything.items() if process.name == "raylet"}
    outside = {pid: title for pid, title in raylets.items() if pid not in set(found)}
    if not outside:
        return set()
    if address:
        wanted = re.compile(rf"--gcs-address={re.escape(address)}(?!\d)")
        here = {pid for pid, title in outside.items() if wanted.search(title)}
        return {pid for pid in everything if _raylet_of(pid) in here}
    drivers = {driver for pid in found for driver in _drivers(pid)}
    served = {
        (pid, job) for pid, title in outside.items() for session, job in drivers if f"--session-name={session}" in title
    }
    return {pid for pid in everything if (_raylet_of(pid), _variable(pid, "RAY_JOB_ID")) in served}


def ray_addresses(found: Iterable[int], everything: Table) -> list[str]:
    """The clusters that have processes among `found`, each by the address of its head node."""
    raylets = {pid for pid, process in everything.items() if process.name == "raylet"}
    served = {_raylet_of(pid) for pid in found} | set(found)
    matches = (_ADDRESS.search(title_of(pid)) for pid in raylets & served)
    return sorted({match["address"] for match in matches if match is not None})


def _drivers(pid: int) -> Iterable[tuple[str, str]]:
    """Session and job id of the Ray driver in a process, from the log that it writes."""
    for _, target in descriptors(pid):
        driver = _DRIVER.search(target)
        if driver is not None:
            yield driver["session"], driver["job"]


def _raylet_of(pid: int) -> int | None:
    found = _variable(pid, "RAY_RAYLET_PID")
    if found is not None and found.isdigit():
        return int(found)
    parent = processes.one(pid)
    return parent.parent if parent is not None else None


def _variable(pid: int, name: str) -> str | None:
    return variables(pid, (name,)).get(name)


Order = Dict[str, Any]
"""What to watch. Each key may be missing. `job`: the answer of `folder.look`; `pids`: pairs of pid and start; `log`:
the path of a file; `ray`: the address of a cluster; `mark`: the id of a job."""


class Members:
    """The processes found so far. A process stays until it ends, even if its parent has ended."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._found: dict[int, Process] = {}
        self._marks: dict[tuple[int, int], str | None] = {}

    def all(self) -> list[Process]:
        """Look at all processes of this machine, and return those that belong, as they are now."""
        everything = processes.table()
        for gone in [key for key in self._marks if key[0] not in everything or everything[key[0]].start != key[1]]:
            del self._marks[gone]
        seeds = {pid for pid, old in self._found.items() if pid in everything and everything[pid].start == old.start}
        seeds |= set(self._seeds(everything))
        if self._order.get("log") and not seeds:
            seeds = log_writers(self._order["log"], everything) - _ancestors(everything, set())
        found = processes.descendants(seeds, everything)
        found |= processes.descendants(self._marked(found, everything), everything)
        found |= processes.descendants(ray_workers(found, self._order.get("ray"), everything), everything)
        found -= self._excluded(seeds, everything)
        self._found = {pid: everything[pid] for pid in found}
        return [self._found[pid] for pid in sorted(found)]

    def known(self) -> list[Process]:
        """Look only at those found before, and return them as they are now."""
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
        """Those with the mark of the job, or the same mark as one that was found."""
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

    def _excluded(self, seeds: set[int], everything: Table) -> set[int]:
        """What does not count: this program with all it started and its ancestors, and the process that only supervises
        the job."""
        runner = (self._order.get("job") or {}).get("runner")
        found = {runner["pid"]} if runner is not None and processes.alive(runner) else set()
        found |= processes.descendants([os.getpid()], everything) - processes.descendants(seeds, everything)
        return found | _ancestors(everything, seeds)


def _ancestors(everything: Table, seeds: set[int]) -> set[int]:
    """The ancestors of this program, up to one of `seeds`."""
    found: set[int] = set()
    above = everything.get(os.getpid())
    while above is not None and above.parent not in seeds:
        found.add(above.parent)
        above = everything.get(above.parent)
    return found


def log_writers(path: str, everything: Table) -> set[int]:
    """The processes that write a log, or that write into the pipe of a `tee` that does: `python train.py | tee
    run.log`."""
    try:
        holders = set(writers(os.stat(path), everything))
    except OSError:
        return set()
    pipes = {
        target for pid in holders for number, target in descriptors(pid) if number == 0 and target.startswith("pipe:")
    }
    if not pipes:
        return holders
    return holders | {
        pid
        for pid in everything
        if any(target in pipes and is_open_for_writing(pid, number) for number, target in descriptors(pid))
    }


def ordered(request: Request) -> Order:
    """The `order` of a request; the name in its `job` is replaced by what the job's folder says."""
    order: Order = dict(request.args.get("order") or {})
    if "job" in order:
        at = folder.folder_of(place.root(request), order["job"])
        order["job"] = folder.look(at)
        order["stacks"] = os.path.join(at, folder.STACKS)
    return order
