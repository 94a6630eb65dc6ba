"""What the processes of a job have used so far, to be compared with a look a little later."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import devices, processes
from patcher.jobs.agent.processes import Process
from patcher.watch.agent import facts, rays
from patcher.watch.agent.finding import Members
from patcher.watch.agent.order import ordered

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

WALK = 15.0
"""Seconds between looks for new processes; in between only the known ones are looked at."""


class Watch:
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
            self._rays = rays.addresses([process.pid for process in found], processes.table())
            self._walked = time.monotonic()
        else:
            found = self.members.known()
        told = [self._told(process) for process in found]
        return {"at": time.time(), "processes": told, "gpus": devices.devices() if gpus else None, "rays": self._rays}

    def _told(self, process: Process) -> dict[str, Any]:
        key = (process.pid, process.start)
        if key not in self._system:
            self._system[key] = rays.is_system(process.name, facts.title(process.pid))
        told = {"pid": process.pid, "start": process.start, "cpu": process.cpu, "memory": process.memory}
        return dict(told, ready=_ready(process.pid), name=process.name, system=self._system[key], **_io(process.pid))


def pulse(request: Request) -> dict[str, Any]:
    """A look at what `order` names, with the GPUs if `gpus`. Its members are kept as long as the connection lasts."""
    order = ordered(request)
    key = "watch " + json.dumps(request.args.get("order"), sort_keys=True)
    watch = request.kept.get(key)
    if watch is None:
        watch = request.kept[key] = Watch(Members(order))
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
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as stream:
            told = dict(line.split(": ") for line in stream.read().splitlines())
    except (OSError, ValueError):
        return {}
    return {
        "disk": int(told.get("read_bytes", 0)) + int(told.get("write_bytes", 0)),
        "called": int(told.get("rchar", 0)),
    }
