"""What runs on this machine, told by /proc: which processes belong to a job, and what they use."""

from __future__ import annotations

import os
import platform
import pwd
from typing import Any, Dict, Iterable, NamedTuple

from patcher.jobs.agent.runner import start_of
from patcher.jobs.agent.sitecustomize_hook import VARIABLE
from patcher.messages import Message, phrase

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


def here() -> dict[str, str]:
    """What tells this machine, since it was started, from any other that sees the same disk."""
    found = {"host": platform.node(), "boot": "", "space": ""}
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            found["boot"] = stream.read().strip()
        found["space"] = os.readlink("/proc/self/ns/pid")
    except OSError:
        pass
    return found


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
    return variables(pid, (MARK,)).get(MARK)


def variables(pid: int, names: Iterable[str]) -> dict[str, str]:
    """Those variables of `names` that a process was started with; none where they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            pairs = (item.partition(b"=") for item in stream.read().split(b"\0"))
            return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs if os.fsdecode(name) in names}
    except OSError:
        return {}


def status(pid: int) -> dict[str, str]:
    """The fields of `/proc/PID/status`; none where it cannot be read."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as stream:
            pairs = (line.partition(":") for line in stream)
            return {name: value.strip() for name, _, value in pairs}
    except OSError:
        return {}


def signals(pid: int) -> tuple[int, int]:
    """The signals that a process catches, and those that it blocks; as bits, signal 1 lowest."""
    found = status(pid)
    return int(found.get("SigCgt", "0"), 16), int(found.get("SigBlk", "0"), 16)


def user_of(pid: int) -> str:
    """The name of the user that a process runs as; empty where it cannot be told."""
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


def claims(job: dict[str, Any], everything: Table) -> dict[int, Message]:
    """Why each process is the job's, whoever's it is: its mark, the job's session, or a process that started it.

    A record proves nothing by itself: it may be made up, copied, or from before the machine was started anew. So each
    reason is one that the process itself shows, and no process is claimed that this one descends from.
    """
    if job.get("machine") != here():
        return {}
    leader = job.get("process")
    watching = {job["runner"]["pid"]} if watched(job) else set()
    found = {pid: phrase("it carries the job's mark") for pid in everything if marked(pid, job)}
    if leader is not None and alive(leader) and _led(leader["pid"], found, watching, everything):
        for process in everything.values():
            if leader["pid"] in (process.pid, process.session):
                found.setdefault(process.pid, phrase("it is in the job's session"))
    for seed in (*sorted(found), *sorted(watching)):
        for pid in descendants([seed], everything):
            found.setdefault(pid, phrase("process {pid} of the job has started it", pid=seed))
    spared = watching | above(os.getpid(), everything)
    return {pid: why for pid, why in found.items() if pid not in spared}


def marked(pid: int, job: dict[str, Any]) -> bool:
    """Whether a process carries the job's mark, and that of no other folder: a copied tree has jobs of the same id."""
    environment = variables(pid, (MARK, VARIABLE))
    if environment.get(MARK) != job["id"]:
        return False
    try:
        return os.path.samefile(os.path.dirname(environment[VARIABLE]), job["folder"])
    except (OSError, KeyError, ValueError):
        return True


def watched(job: dict[str, Any]) -> bool:
    """Whether the program that watches the job runs: one of this user's that works in the job's folder."""
    runner = job.get("runner")
    if runner is None or not alive(runner):
        return False
    try:
        with open(f"/proc/{runner['pid']}/cmdline", "rb") as stream:
            words = stream.read(1 << 16).split(b"\0")
        within = os.path.samefile(f"/proc/{runner['pid']}/cwd", job["folder"])
    except (OSError, ValueError):
        return False
    return within and any(word.endswith(b"/runner.py") for word in words) and owner_of(runner["pid"]) == os.getuid()


def leads(job: dict[str, Any]) -> bool:
    """Whether the process that the job began with is there still. Another user's is taken at the record's word."""
    leader = job.get("process")
    if leader is None or not alive(leader):
        return False
    return owner_of(leader["pid"]) != os.getuid() or marked(leader["pid"], job)


def _led(leader: int, marked: Iterable[int], watching: set[int], everything: Table) -> bool:
    return leader in marked or (leader in everything and everything[leader].parent in watching)


def above(pid: int, everything: Table) -> set[int]:
    """A process and all that it descends from, and the first of all."""
    found = {1}
    while pid in everything and pid not in found:
        found.add(pid)
        pid = everything[pid].parent
    return found


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
