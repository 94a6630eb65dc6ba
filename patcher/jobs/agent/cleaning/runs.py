"""Processes that are left, with what they hold; and others that stand in the way."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from patcher.jobs.agent import devices, folder, processes
from patcher.jobs.agent.cleaning.holders import Port, ports
from patcher.jobs.agent.cleaning.model import Items, item
from patcher.jobs.agent.cleaning.scene import Scene
from patcher.jobs.agent.processes import TICKS
from patcher.messages import Message, Refusal, phrase

USUAL = {6379: "Ray", 8265: "Ray", 29500: "torch"}
"""Ports that a run asks for by default, and whose they are."""
_TAKEN = re.compile(rb"(?i)address already in use|EADDRINUSE|port\D{0,20}(?:in use|occupied|unavailable)")
_NUMBER = re.compile(rb"(?<![\d.])(\d{4,5})(?![\d.])")
_TAIL = 1 << 16
_GCS = "gcs_server"


def left(scene: Scene) -> tuple[Items, Items]:
    """The job's processes; and those of others that hold what the job wants, or carry its mark, with the reason."""
    gpus = _on_gpus()
    listening = ports()
    mine: Items = []
    for pid in sorted(scene.mine):
        own = sorted({port.number for port in listening if pid in scene.held.get(port.inode, ())})
        mine.append(_process(scene, pid, scene.claims[pid], gpus, own))
    others: Items = [
        _process(scene, pid, phrase("it carries the job's mark and belongs to {user}", user=_user(pid)), gpus, [])
        for pid in sorted(set(scene.claims) - scene.mine)
    ]
    others += _on_the_gpus(scene, gpus)
    others += _at_ports(scene, listening)
    others += _other_rays(scene)
    seen: set[str] = set()
    return mine, [one for one in others if not (one["key"] in seen or seen.add(one["key"]))]  # type: ignore[func-returns-value]


def _process(scene: Scene, pid: int, why: Message, gpus: dict[int, list[tuple[int, int]]], at: list[int]) -> Any:
    process = scene.everything[pid]
    return item(
        "process",
        str(pid),
        (process.start,),
        why,
        pid=pid,
        start=process.start,
        name=process.name,
        command=processes.command_of(pid, 4096),
        owner=_user(pid),
        age=max(0.0, _uptime() - process.start / TICKS),
        memory=process.memory,
        gpu=sum(memory for _, memory in gpus.get(pid, ())),
        ports=at,
    )


def _on_gpus() -> dict[int, list[tuple[int, int]]]:
    """By process: each GPU that it is on, and the bytes that it holds there."""
    found: dict[int, list[tuple[int, int]]] = {}
    for gpu in devices.devices():
        for process in gpu["busy"]:
            found.setdefault(process["pid"], []).append((gpu["index"], process["memory"]))
    return found


def _on_the_gpus(scene: Scene, gpus: dict[int, list[tuple[int, int]]]) -> Items:
    found: Items = []
    for pid, places in gpus.items():
        if pid in scene.claims:
            continue
        where = ", ".join(f"{index}" for index, _ in places)
        memory = f"{sum(held for _, held in places) / (1 << 30):.1f}"
        why = phrase("it holds {memory} GiB of GPU {where} and is not this job's", memory=memory, where=where)
        if pid in scene.everything:
            found.append(_process(scene, pid, why, gpus, []))
        else:
            found.append(item("process", str(pid), (), why, pid=pid, owner="", name="?"))
    return found


def _at_ports(scene: Scene, listening: list[Port]) -> Items:
    """Who listens where the job would, or where it said that somebody does."""
    wanted = dict(USUAL)
    wanted.update(dict.fromkeys(_refused(scene.job), ""))
    found: Items = []
    for port in listening:
        pids = scene.held.get(port.inode, [])
        if port.number not in wanted or any(pid in scene.claims for pid in pids):
            continue
        why = phrase("it listens at port {port} and is not this job's", port=port.number)
        for pid in pids[:1]:
            found.append(_process(scene, pid, why, {}, [port.number]))
        if not pids:
            found.append(
                item("port", str(port.number), (port.inode,), why, owner=_name(port.user), ports=[port.number])
            )
    return found


def _other_rays(scene: Scene) -> Items:
    """Rays of this user that the job has not started: `ray stop` would stop them too."""
    why = phrase("a Ray that this job has not started; ray stop would stop it as well")
    found: Items = []
    for pid, process in scene.everything.items():
        if process.name == _GCS and pid not in scene.claims and processes.owner_of(pid) == os.getuid():
            found.append(_process(scene, pid, why, {}, []))
    return found


def _refused(job: dict[str, Any]) -> set[int]:
    """Ports that the log's end says are taken."""
    try:
        with folder.log(job["folder"]) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL))
            lines = log.read(_TAIL).splitlines()
    except (OSError, Refusal):
        return set()
    told = [line for line in lines if _TAKEN.search(line)]
    return {number for line in told for found in _NUMBER.findall(line) if 1023 < (number := int(found)) < 65536}


def _user(pid: int) -> str:
    return processes.user_of(pid) or str(processes.owner_of(pid))


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _uptime() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
