"""The processes of this machine, read from /proc: which belong to a job, and what they use.

A process is named by its number together with its start: numbers are given anew.
"""

from __future__ import annotations

import os
import platform
import pwd
from typing import Any, Dict, Iterable, NamedTuple

from patcher.jobs.agent.runner import start_of
from patcher.jobs.agent.sitecustomize_hook import VARIABLE
from patcher.messages import Message, phrase
from patcher.remote.agent import gpus
from patcher.remote.agent.environs import decode_environ
from patcher.remote.agent.facts import UnknownFact

MARK = "UKY_PATCH_JOB"
"""The variable that every process of a job has in its environment, with the job's id as its value."""
TICKS = float(os.sysconf("SC_CLK_TCK"))
PAGE = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One process. `start` is in ticks since the machine's start, `cpu` in seconds, `memory` (resident) in bytes."""

    pid: int
    parent: int
    session: int
    start: int
    cpu: float
    memory: int
    name: str


Table = Dict[int, Process]
"""Processes by their number."""


def here() -> dict[str, str]:
    """What tells this machine since its start, and this PID namespace, from any other that sees the same disk."""
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
    rest = tail.split()  # From the third field of /proc/PID/stat on; the second is the name, which may hold a `)`.
    if rest[0] in (b"Z", b"X"):
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    cpu = (int(rest[11]) + int(rest[12])) / TICKS
    return Process(pid, int(rest[1]), int(rest[3]), int(rest[19]), cpu, int(rest[21]) * PAGE, name)


def alive(process: dict[str, Any] | None) -> bool:
    """Whether a process that was noted as `pid` and `start` is still there, and not another under its number."""
    return process is not None and process["start"] is not None and start_of(process["pid"]) == process["start"]


def mark_of(pid: int) -> str | None:
    """The job that a process says it belongs to; None also where its environment cannot be read."""
    return variables(pid, (MARK,)).get(MARK)


def variables(pid: int, names: Iterable[str]) -> dict[str, str]:
    """Those variables of `names` that a process was started with; none where they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            known = decode_environ(stream.read())
    except OSError:
        return {}
    return {name: known[name] for name in names if name in known}


def status(pid: int) -> dict[str, str]:
    """The fields of `/proc/PID/status`; none where it cannot be read."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as stream:
            pairs = (line.partition(":") for line in stream)
            return {name: value.strip() for name, _, value in pairs}
    except OSError:
        return {}


def io_counters(pid: int) -> dict[str, int]:
    """What a process has read and written, by the kernel's names such as `rchar`; none where that may not be read."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as stream:
            pairs = (line.partition(":") for line in stream)
            return {name: int(value) for name, _, value in pairs}
    except (OSError, ValueError):
        return {}


def signals(pid: int) -> tuple[int, int]:
    """The signals that a process catches, and those that it blocks, as bits: the lowest is signal 1."""
    found = status(pid)
    return int(found.get("SigCgt", "0"), 16), int(found.get("SigBlk", "0"), 16)


def user_of(pid: int) -> str:
    """The name of the user that a process runs as; empty where that is unknown."""
    try:
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        return ""


def command_line(pid: int) -> list[bytes]:
    """The words of a process's command line; empty where it is gone.

    A process may have put another text in its place: Ray's workers and vLLM's engines do, as `ray::WorkerDict` with
    blanks behind it.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            content = stream.read(1 << 17).rstrip(b"\0 ")
    except OSError:
        return []
    return content.split(b"\0") if content else []


def title_of(pid: int) -> str:
    """The whole command line of a process, or the text in its place; empty where it is gone."""
    return b" ".join(word for word in command_line(pid) if word).decode("utf-8", "replace").strip()


def command_of(pid: int, most: int = 120) -> str:
    """The beginning of a command line in at most so many bytes, no word of it cut; empty where the process is gone."""
    words = b" ".join(word for word in command_line(pid) if word)
    whole = words if len(words) <= most else words[:most].rpartition(b" ")[0]
    return b" ".join(whole.split()).decode("utf-8", "replace")


def of_job(job: dict[str, Any], everything: Table) -> list[Process]:
    """The processes of a job (`claims`) that belong to this user."""
    mine = os.getuid()
    return [everything[pid] for pid in sorted(claims(job, everything)) if owner_of(pid) == mine]


def claims(job: dict[str, Any], everything: Table) -> dict[int, Message]:
    """The processes of a job, of whatever user, each with the reason: its mark, the job's session, or its ancestor.

    `job.json` alone proves nothing: it may be forged, copied, or older than the machine's start. So each reason is one
    that the process itself shows. The program that watches the job is none of its processes, and neither is this one or
    any that this one descends from: the job may have been started from the same shell.
    """
    if job.get("machine") != here():
        return {}
    leader = job.get("process")  # The process that the job began with; it leads a session of its own.
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
    """Whether a process carries the mark of this job. A copied tree has jobs of the same id, so the folder that the
    mark comes from has to be this job's, as the variable of the hook for stacks tells.
    """
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
        within = os.path.samefile(f"/proc/{runner['pid']}/cwd", job["folder"])
    except (OSError, ValueError):
        return False
    return (
        within
        and any(word.endswith(b"/runner.py") for word in command_line(runner["pid"]))
        and owner_of(runner["pid"]) == os.getuid()
    )


def leads(job: dict[str, Any]) -> bool:
    """Whether the process that the job began with is still there.

    It has to carry the job's mark, but for one of another user, whose variables cannot be read.
    """
    leader = job.get("process")
    if leader is None or not alive(leader):
        return False
    return owner_of(leader["pid"]) != os.getuid() or marked(leader["pid"], job)


def _led(leader: int, marked: Iterable[int], watching: set[int], everything: Table) -> bool:
    """Whether a process shows itself that the job began with it: by the mark, or as a child of the job's watcher."""
    return leader in marked or (leader in everything and everything[leader].parent in watching)


def above(pid: int, everything: Table) -> set[int]:
    """A process and all its ancestors, and always process 1."""
    found = {1}
    while pid in everything and pid not in found:
        found.add(pid)
        pid = everything[pid].parent
    return found


def descendants(seeds: Iterable[int], everything: Table) -> set[int]:
    """Those of `seeds` that are alive, and all that descend from them."""
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


_NOBODY = 2 << 30
"""Bytes in use on a GPU from which on a process of another container must be there, though none is shown. A guess: a
display or the driver itself takes some hundred MB."""
_SHARED = "nvidia-cuda-mps"
"""What the names of NVIDIA's servers that share a GPU between processes begin with."""


def gpus_in_use() -> list[dict[str, Any]]:
    """Each GPU (`gpus.parse_gpus`) with its processes as `busy`; servers that share a GPU do not count.

    Empty where nvidia-smi lists none.
    """
    try:
        found = gpus.gpus()
        running = gpus.processes()
    except UnknownFact:
        return []
    by_uuid = {gpu["uuid"]: dict(gpu, busy=[]) for gpu in found}
    for process in running:
        if process["uuid"] in by_uuid and not process["name"].rpartition("/")[2].startswith(_SHARED):
            by_uuid[process["uuid"]]["busy"].append(process)
    return list(by_uuid.values())


def visible_gpus(found: list[dict[str, Any]], wanted: str | None) -> list[dict[str, Any]]:
    """Those that CUDA_VISIBLE_DEVICES leaves a job: `0,2`, or beginnings of UUIDs. All for any other value, or none."""
    names = [part.strip() for part in (wanted or "").split(",") if part.strip()]
    chosen = [gpu for gpu in found if any(name == str(gpu["index"]) or gpu["uuid"].startswith(name) for name in names)]
    return chosen or found


def unseen_process(gpu: dict[str, Any]) -> list[dict[str, Any]]:
    """A process without a number where a GPU's memory says that there is one which is not visible here; else none."""
    return [{"pid": None, "memory": gpu["used"]}] if (gpu["used"] or 0) > _NOBODY else []
