"""The verb `pulse`: what the processes of a job have used so far, to be compared with a sample a little later.

`UsageMeter` remembers between two samples what does not change. `Sampler` answers for one node of a Ray cluster.
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
"""Seconds between looks for new processes; in between only the known ones are looked at: a walk through /proc reads
thousands of files on a large machine."""


class UsageMeter:
    """The members, and what of them does not change."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._walked = -WALK
        self._system: dict[tuple[int, int], bool] = {}
        self._rays: list[str] = []

    def look(self, gpus: bool = False) -> dict[str, Any]:
        """The processes, each with `cpu` in seconds, and bytes; `rays`: their clusters. With `gpus` those too."""
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
    """A look at what `order` names, with the GPUs if `gpus`. Its members are kept as long as the connection lasts."""
    order = ordered(request)
    key = "watch " + json.dumps(request.args.get("order"), sort_keys=True)
    watch = request.kept.get(key)
    if watch is None:
        watch = request.kept[key] = UsageMeter(Members(order))
    found: dict[str, Any] = watch.look(bool(request.args.get("gpus")))
    return found


def _ready(pid: int) -> float:
    """Seconds for which the main thread could have run, and others did: a full machine makes nobody idle."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as stream:
            return int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _io(pid: int) -> dict[str, int]:
    """Bytes from and to disks, and bytes asked for by calls; nothing where that may not be read."""
    found = processes.io_counters(pid)
    if not found:
        return {}
    return {"disk": found.get("read_bytes", 0) + found.get("write_bytes", 0), "called": found.get("rchar", 0)}


def process_namespace() -> str:
    """This kernel and this space of process numbers: two looks from one place see the same processes."""
    here = processes.here()
    return f"{here['boot']} {here['space']}"


class Sampler:
    """Answers `where`, `pulse` and `stacks`; what is looked for comes with each question."""

    def __init__(self) -> None:
        self._watches: dict[str, UsageMeter] = {}

    def ask(self, verb: str, args: dict[str, Any]) -> Any:
        """Raises ValueError for another verb."""
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
