"""What runs on this machine, told by /proc: which processes belong to a job, and what they use."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, NamedTuple

from patcher.agent.jobs.runner import start_of
from patcher.agent.said import Said, phrase

MARK = "UKY_PATCH_JOB"
"""The variable that every process of a job has in its environment, with the job's id as its value."""
TICKS = float(os.sysconf("SC_CLK_TCK"))
PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One process. `start` in ticks since the machine's start, `cpu` in seconds, `memory` in bytes."""

    pid: int
    parent: int
    session: int
    start: int
    cpu: float
    memory: int
    name: str


Table = Dict[int, Process]


def table() -> Table:
    """All processes that are alive, by number."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            process = one(int(entry))
            if process is not None:
                found[process.pid] = process
    return found


def one(pid: int) -> Process | None:
    """A process that is alive; None where it is gone, a zombie included."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            head, _, tail = stream.read().rpartition(b")")
    except OSError:
        return None
    rest = tail.split()
    if rest[0] in (b"Z", b"X"):
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    cpu = (int(rest[11]) + int(rest[12])) / TICKS
    return Process(pid, int(rest[1]), int(rest[3]), int(rest[19]), cpu, int(rest[21]) * PAGE, name)


def alive(process: dict[str, Any] | None) -> bool:
    """Whether the process that was noted with its start is there still, and no other under its number."""
    return process is not None and process["start"] is not None and start_of(process["pid"]) == process["start"]


def mark_of(pid: int) -> str | None:
    """The job that a process says it belongs to; None also where its environment cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            environment = stream.read()
    except OSError:
        return None
    prefix = f"{MARK}=".encode()
    for item in environment.split(b"\0"):
        if item.startswith(prefix):
            return item[len(prefix) :].decode("utf-8", "replace")
    return None


def user_of(pid: int) -> str:
    """The name of the user that a process runs as; empty where it cannot be told."""
    import pwd

    try:
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        return ""


def command_of(pid: int, most: int = 120) -> str:
    """What a process was started as: its name and first arguments, none of them cut; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            content = stream.read(1 << 17)
    except OSError:
        return ""
    words = b" ".join(part for part in content.rstrip(b"\0").split(b"\0") if part)
    whole = words if len(words) <= most else words[:most].rpartition(b" ")[0]
    return b" ".join(whole.split()).decode("utf-8", "replace")


def of_job(job: dict[str, Any], everything: Table) -> list[Process]:
    """The processes of a job: those with its mark, those of its session, and all that descend from them.

    The program that watches the job is none of them, nor is this one.
    """
    mine = os.getuid()
    return [everything[pid] for pid in sorted(claims(job, everything)) if owner_of(pid) == mine]


def claims(job: dict[str, Any], everything: Table) -> dict[int, Said]:
    """Why each process is the job's, whoever's it is: its mark, the job's session, or a process that started it."""
    runner, leader = job.get("runner"), job.get("process")
    found = {pid: phrase("it carries the job's mark") for pid in everything if mark_of(pid) == job["id"]}
    if leader is not None and alive(leader):
        for process in everything.values():
            if leader["pid"] in (process.pid, process.session):
                found.setdefault(process.pid, phrase("it is in the job's session"))
    watching = {runner["pid"]} if runner is not None and alive(runner) else set()
    for seed in (*sorted(found), *sorted(watching)):
        for pid in descendants([seed], everything):
            found.setdefault(pid, phrase("process {pid} of the job has started it", pid=seed))
    return {pid: why for pid, why in found.items() if pid not in watching and pid != os.getpid()}


def descendants(seeds: Iterable[int], everything: Table) -> set[int]:
    """The seeds that are alive, and all that they have started."""
    children: dict[int, list[int]] = {}
    for process in everything.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    left = [pid for pid in seeds if pid in everything]
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left.extend(children.get(pid, ()))
    return found


def owner_of(pid: int) -> int:
    """The number of the user that a process runs as; -1 where it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1
