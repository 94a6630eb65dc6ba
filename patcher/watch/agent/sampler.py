"""The verb `pulse`: what the processes of a job have used so far. Two answers, some seconds apart, show the usage.

`UsageMeter` remembers between two looks what does not change. `Sampler` answers on the nodes of a Ray cluster.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process
from patcher.watch.agent.members import Members, Order, is_system, ordered, ray_addresses
from patcher.watch.agent.process_facts import title
from patcher.watch.agent.stacks import take_stacks

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

WALK = 15.0
"""Seconds between searches for new processes; in between only the known ones are read. A search through /proc reads
thousands of files on a large machine."""


class UsageMeter:
    """Reads what the members have used."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._walked = -WALK
        self._system: dict[tuple[int, int], bool] = {}
        self._rays: list[str] = []

    def look(self, gpus: bool = False) -> dict[str, Any]:
        """The members, each with `cpu` in seconds and the rest in bytes; `rays`: their clusters. `gpus`: also the GPUs
        in use."""
        if time.monotonic() - self._walked >= WALK:
            found = self.members.all()
            self._rays = ray_addresses([process.pid for process in found], processes.table())
            self._walked = time.monotonic()
        else:
            found = self.members.known()
        samples = [self._sample(process) for process in found]
        return {
            "at": time.time(),
            "processes": samples,
            "gpus": processes.gpus_in_use() if gpus else None,
            "rays": self._rays,
        }

    def _sample(self, process: Process) -> dict[str, Any]:
        key = (process.pid, process.start)
        if key not in self._system:
            self._system[key] = is_system(process.name, title(process.pid))
        sample = {"pid": process.pid, "start": process.start, "cpu": process.cpu, "memory": process.memory}
        return dict(sample, ready=_ready(process.pid), name=process.name, system=self._system[key], **_io(process.pid))


def pulse(request: Request) -> dict[str, Any]:
    """Answer the verb. The members of an `order` are kept while the connection lasts."""
    order = ordered(request)
    key = "watch " + json.dumps(request.args.get("order"), sort_keys=True)
    watch = request.kept.get(key)
    if watch is None:
        watch = request.kept[key] = UsageMeter(Members(order))
    found: dict[str, Any] = watch.look(bool(request.args.get("gpus")))
    return found


def _ready(pid: int) -> float:
    """Seconds for which the main thread was ready, but had no core: on a full machine a process that gets no core is
    not idle."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as stream:
            return int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _io(pid: int) -> dict[str, int]:
    """Bytes read from and written to disks, and bytes read by system calls; nothing where they may not be read."""
    found = processes.io_counters(pid)
    if not found:
        return {}
    return {"disk": found.get("read_bytes", 0) + found.get("write_bytes", 0), "called": found.get("rchar", 0)}


def process_namespace() -> str:
    """Identifies the kernel and the pid namespace: from two places with the same value, the same processes are
    visible."""
    here = processes.here()
    return f"{here['boot']} {here['space']}"


class Sampler:
    """Answers `where`, `pulse` and `stacks` on a node of a Ray cluster. Each request says what to watch."""

    def __init__(self) -> None:
        self._watches: dict[str, UsageMeter] = {}

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        """Answer a verb. Raises ValueError for an unknown one."""
        if verb == "where":
            return process_namespace()
        order: Order = {"folders": [os.path.dirname(sys.executable)], **args["order"]}
        key = json.dumps(order, sort_keys=True)
        if key not in self._watches:
            self._watches[key] = UsageMeter(Members(order))
        watch = self._watches[key]
        if verb == "pulse":
            return watch.look(bool(args.get("gpus")))
        if verb == "stacks":
            return take_stacks(watch.members, order, bool(args.get("native")))
        raise ValueError(verb)
