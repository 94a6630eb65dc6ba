"""Ray's processes: which workers serve a driver, also where the cluster was there before it."""

from __future__ import annotations

import os
import re
from typing import Iterable

from patcher.jobs.agent.processes import Table, one, variables

_SYSTEM = ("raylet", "gcs_server")
_SERVICES = (
    *("/ray/dashboard/", "/ray/autoscaler/", "/ray/_private/log_monitor.py", "/ray/_private/runtime_env/"),
    *("ray::DashboardAgent", "ray::RuntimeEnvAgent"),
)
_ADDRESS = re.compile(r"--gcs-address=(?P<address>\S+)")
_DRIVER = re.compile(r"/(?P<session>session_[^/]+)/logs/python-core-driver-(?P<job>[0-9a-f]{8})")


def is_system(name: str, title: str) -> bool:
    """Whether a process is one that Ray itself needs, and no work of the job."""
    return name in _SYSTEM or any(text in title for text in _SERVICES)


def workers(found: Iterable[int], address: str | None, everything: Table) -> set[int]:
    """Workers of clusters that were there before the drivers among `found`, and of the cluster at `address`."""
    raylets = {pid: _title(pid) for pid, process in everything.items() if process.name == "raylet"}
    outside = {pid: title for pid, title in raylets.items() if pid not in set(found)}
    if not outside:
        return set()
    if address:
        wanted = re.compile(rf"--gcs-address={re.escape(address)}(?!\d)")
        here = {pid for pid, title in outside.items() if wanted.search(title)}
        return {pid for pid in everything if _raylet_of(pid) in here}
    drivers = {told for pid in found for told in _drivers(pid)}
    served = {
        (pid, job) for pid, title in outside.items() for session, job in drivers if f"--session-name={session}" in title
    }
    return {pid for pid in everything if (_raylet_of(pid), _variable(pid, "RAY_JOB_ID")) in served}


def addresses(found: Iterable[int], everything: Table) -> list[str]:
    """The clusters that have processes among `found`, by the address of their head."""
    raylets = {pid for pid, process in everything.items() if process.name == "raylet"}
    served = {_raylet_of(pid) for pid in found} | set(found)
    told = (_ADDRESS.search(_title(pid)) for pid in raylets & served)
    return sorted({match["address"] for match in told if match is not None})


def _drivers(pid: int) -> Iterable[tuple[str, str]]:
    """Session and job of the driver that a process is, told by the log that it writes."""
    from patcher.watch.agent.finding import descriptors

    for _, target in descriptors(pid):
        driver = _DRIVER.search(target)
        if driver is not None:
            yield driver["session"], driver["job"]


def _raylet_of(pid: int) -> int | None:
    found = _variable(pid, "RAY_RAYLET_PID")
    parent = one(pid)
    if found is not None and found.isdigit():
        return int(found)
    return parent.parent if parent is not None else None


def _variable(pid: int, name: str) -> str | None:
    return variables(pid, (name,)).get(name)


def _title(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return os.fsdecode(stream.read().rstrip(b"\0 ").replace(b"\0", b" "))
    except OSError:
        return ""
