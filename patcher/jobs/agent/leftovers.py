"""What a job left on this machine, separated from what belongs to somebody else. Reads only.

A thing counts as the job's only by proof:

- a process, where it carries the job's mark or descends from one that does (`processes.claims`);
- shared memory, a socket or a session of Ray, where only such processes hold it, or where the sealed notes of this job
  name it and nobody holds it (`folder.noted`);
- an entry of a cache, where it lies in the tree, outside of the sources, under a name that a compiler gives (`caches`).

What somebody else holds that stands in the job's way (GPU memory, a port, another Ray) is listed apart, with the
reason.
"""

from __future__ import annotations

import os
import re
import socket
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from patcher.jobs.agent import caches, folder, processes, traces
from patcher.jobs.agent.processes import TICKS, Table
from patcher.messages import Message, Refusal, phrase
from patcher.remote.agent import variables
from patcher.remote.agent.facts import user_name
from patcher.worktree import locks

Item = Dict[str, Any]
"""`kind`, `key`, `what`, `why` and facts of its kind, as `patcher.jobs.cleaning.Thing` has them. Another thing in the
same place has another `key`."""
Items = List[Item]
GpuUse = Dict[int, List[Tuple[int, int]]]
"""By process: the GPUs that it uses by their index, each with the bytes that it holds there."""

USUAL_PORTS = {6379, 8265, 29500}
"""Ports that a run asks for by default: Ray's GCS and dashboard, and torch's rendezvous."""
_PORT_TAKEN = re.compile(rb"(?i)address already in use|EADDRINUSE|port\D{0,20}(?:in use|occupied|unavailable)")
_PORT = re.compile(rb"(?<![\d.])(\d{4,5})(?![\d.])")
_LOG_END = 1 << 16
"""Bytes of the log's end that are searched for ports that are taken. A guess: a run ends soon after that error."""
_LISTENS = "0A"
"""The state LISTEN in /proc/net/tcp."""
_GCS = "gcs_server"
"""The process of Ray's head; there is one for each Ray."""

_MOST_ENTRIES = 200_000
"""Files of a folder whose sizes are added up. A guess: more take seconds, and the size is only shown."""


class Snapshot(NamedTuple):
    """The job and the machine's processes at one moment."""

    root: str
    job: dict[str, Any]
    table: Table
    claims: dict[int, Message]
    """Why each living process is the job's, whichever user it belongs to."""
    own: frozenset[int]
    """Those of them that belong to this user."""
    holders: dict[Any, list[int]]
    """The processes that hold each file (by device and inode) and each socket (by inode). Without root's rights those
    of other users cannot be looked into, and are missing."""

    @property
    def running(self) -> bool:
        return self.job["state"] in folder.NOT_OVER


class Port(NamedTuple):
    """A TCP port that somebody listens at, and the number of the user who opened it."""

    number: int
    inode: int
    user: int


def take_snapshot(root: str, wanted: str | None) -> Snapshot:
    """Look at the job `wanted` of the tree (see `folder.folder_of`) and at all processes. Raises Refusal."""
    job = folder.look(folder.folder_of(root, wanted))
    table = processes.table()
    claims = processes.claims(job, table) if job["elsewhere"] is None else {}
    own = frozenset(pid for pid in claims if processes.owner_of(pid) == os.getuid())
    holders: dict[Any, list[int]] = {}
    for pid in table:
        for key in traces.open_in(pid) | traces.mapped_in(pid):
            holders.setdefault(key, []).append(pid)
    return Snapshot(root, job, table, claims, own, holders)


def find_leftovers(found: Snapshot, args: dict[str, Any]) -> tuple[Items, Items]:
    """The job's things, and those that are not touched. `args` are those of the verb `list_leftovers` of `cleaning`.

    Raises Refusal of kind `elsewhere` for a job on another machine.
    """
    job = found.job
    if job["elsewhere"] is not None:
        title = phrase("job {id} runs on {machine}", id=job["id"], machine=job["elsewhere"])
        raise Refusal("elsewhere", title, None, phrase("Clean up there."))
    items: Items = []
    alone: Items = []
    for own, others in (_find_processes(found), _find_shared(found), _find_sessions(found)):
        items += own
        alone += others
    if found.running and not args.get("running"):
        at_work = phrase("the job is at work")
        items, alone = [], [dict(one, why=at_work) for one in items] + alone
    if args.get("caches"):
        own, others = _find_caches(found, args.get("env", {}))
        items += own
        alone += others
    return items, alone


def _item(kind: str, what: str, which: Sequence[Any], reason: Message, /, **facts: Any) -> Item:
    """`which` tells it from another that takes its place later: a process's start, or a file's device and inode."""
    key = ":".join(str(part) for part in (kind, what, *which))
    return dict(facts, kind=kind, key=key, what=what, why=reason)


def _path_item(kind: str, path: str, reason: Message, **facts: Any) -> Item:
    identity = _identity(path) or (0, 0)
    return _item(kind, path, identity, reason, identity=list(identity), **facts)


# Processes, and who stands in the way.


def _find_processes(found: Snapshot) -> tuple[Items, Items]:
    """The job's processes; and those of others that carry its mark, or that stand in its way."""
    gpus: GpuUse = {}
    for gpu in processes.gpus_in_use():
        for process in gpu["busy"]:
            gpus.setdefault(process["pid"], []).append((gpu["index"], process["memory"]))
    listening = _listening()
    own = []
    for pid in sorted(found.own):
        numbers = sorted({port.number for port in listening if pid in found.holders.get(port.inode, ())})
        own.append(_process(found, pid, found.claims[pid], gpus, numbers))
    others: dict[str, Item] = {}
    for one in _in_the_way(found, gpus, listening):
        others.setdefault(one["key"], one)
    return own, list(others.values())


def _in_the_way(found: Snapshot, gpus: GpuUse, listening: list[Port]) -> Iterator[Item]:
    """Processes and ports of others that a new run would meet. One may come several times, the best reason first."""
    for pid in sorted(set(found.claims) - found.own):
        user = user_name(processes.owner_of(pid))
        yield _process(found, pid, phrase("it carries the job's mark and belongs to {user}", user=user), gpus)
    for pid, used in gpus.items():
        if pid not in found.claims:
            memory = f"{sum(held for _, held in used) / (1 << 30):.1f}"
            where = ", ".join(str(index) for index, _ in used)
            reason = phrase("it holds {memory} GiB of GPU {where} and is not this job's", memory=memory, where=where)
            if pid in found.table:
                yield _process(found, pid, reason, gpus)
            else:  # Of another container: nvidia-smi names it, /proc does not.
                yield _item("process", str(pid), (), reason, pid=pid, owner="", name="?")
    wanted = USUAL_PORTS | _refused_ports(found.job)
    for port in listening:
        pids = found.holders.get(port.inode, [])
        if port.number in wanted and not any(pid in found.claims for pid in pids):
            reason = phrase("it listens at port {port} and is not this job's", port=port.number)
            if pids:
                yield _process(found, pids[0], reason, {}, [port.number])
            else:
                owner = user_name(port.user)
                yield _item("port", str(port.number), (port.inode,), reason, owner=owner, ports=[port.number])
    for pid, process in found.table.items():
        if process.name == _GCS and pid not in found.claims and processes.owner_of(pid) == os.getuid():
            reason = phrase("a Ray that this job has not started; ray stop would stop it as well")
            yield _process(found, pid, reason, {})


def _process(found: Snapshot, pid: int, reason: Message, gpus: GpuUse, ports: Sequence[int] = ()) -> Item:
    process = found.table[pid]
    uptime = time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return _item(
        "process",
        str(pid),
        (process.start,),
        reason,
        pid=pid,
        start=process.start,
        name=process.name,
        command=processes.command_of(pid, 4096),
        owner=user_name(processes.owner_of(pid)),
        age=max(0.0, uptime - process.start / TICKS),
        memory=process.memory,
        gpu=sum(memory for _, memory in gpus.get(pid, ())),
        ports=list(ports),
    )


def _listening() -> list[Port]:
    """The TCP ports at which somebody listens in this network namespace.

    A line of /proc/net/tcp begins `0: 0100007F:18EB 00000000:0000 0A`: local address and port in hexadecimal, the
    remote ones, the state; its eighth field is the user, its tenth the socket's inode.
    """
    found: list[Port] = []
    for path in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(path, encoding="ascii") as stream:
                lines = stream.read().splitlines()[1:]
        except OSError:
            continue
        found += [
            Port(int(fields[1].rpartition(":")[2], 16), int(fields[9]), int(fields[7]))
            for fields in map(str.split, lines)
            if len(fields) > 9 and fields[3] == _LISTENS
        ]
    return found


def _refused_ports(job: dict[str, Any]) -> set[int]:
    """Ports that the end of the log says are taken: `[Errno 98] Address already in use (port 29500)`."""
    try:
        with folder.log(job["folder"]) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_END))
            lines = log.read(_LOG_END).splitlines()
    except (OSError, Refusal):
        return set()
    numbers = {int(found) for line in lines if _PORT_TAKEN.search(line) for found in _PORT.findall(line)}
    return {number for number in numbers if 1023 < number < 65536}


# Shared memory, sockets and sessions of Ray.


def _find_shared(found: Snapshot) -> tuple[Items, Items]:
    """Shared memory and sockets that are the job's; and those that somebody else holds as well.

    What nothing ties to the job is in neither list.
    """
    notes = {
        (note["path"], note["device"], note["inode"]): note["pid"]
        for note in folder.noted(found.job["folder"], "shm", "socket")
    }
    bound = traces.sockets_by_path()
    own: Items = []
    others: Items = []
    for kind, above, pattern in (
        ("shm", traces.SHARED, traces.SEGMENT),
        ("socket", traces.SOCKETS, traces.SOCKET),
    ):
        for path in sorted(os.path.join(above, name) for name in traces.names_in(above) if pattern.fullmatch(name)):
            status = traces.own(path, kind)
            if status is None:
                continue
            pids = _holders_of(found, kind, path, status, bound)
            strangers = [pid for pid in pids if pid not in found.own]
            noted = notes.get((path, status.st_dev, status.st_ino))
            if strangers and (noted is not None or len(strangers) < len(pids)):
                reason = phrase("process {pid} has it open, and is not this job's", pid=strangers[0])
                others.append(_path_item(kind, path, reason, size=status.st_size))
            elif pids and not strangers:
                reason = phrase("only process {pid} of the job has it open", pid=pids[0])
                own.append(_path_item(kind, path, reason, size=status.st_size))
            elif noted is not None and not pids:
                reason = phrase("process {pid} of the job had it open, and nobody has now", pid=noted)
                own.append(_path_item(kind, path, reason, size=status.st_size))
    return own, others


def _holders_of(found: Snapshot, kind: str, path: str, status: os.stat_result, bound: dict[str, int]) -> list[int]:
    """The processes that have it open. A socket's path has another inode than the socket that is bound to it."""
    key: Any = bound.get(path) if kind == "socket" else (status.st_dev, status.st_ino)
    return found.holders.get(key, [])


def _find_sessions(found: Snapshot) -> tuple[Items, Items]:
    """Folders of Ray's sessions that the job has made; and those of them in which somebody else's process works."""
    reasons = {
        note["path"]: phrase("process {pid} of the job worked in it", pid=note["pid"])
        for note in folder.noted(found.job["folder"], "session")
        if _identity(note["path"]) == (note["device"], note["inode"])
    }
    for pid in sorted(found.own):
        path = traces.session_of(pid)
        if path is not None:
            reasons.setdefault(path, phrase("process {pid} of the job works in it", pid=pid))
    own: Items = []
    others: Items = []
    for path, reason in sorted(reasons.items()):
        if not _is_session(path):
            continue
        strangers = [pid for pid in _working_in(found, path) if pid not in found.own]
        if strangers:
            reason = phrase("process {pid} works in it, and is not this job's", pid=strangers[0])
        owner = processes.user_of(os.getpid())
        (others if strangers else own).append(_path_item("session", path, reason, size=_size(path), owner=owner))
    return own, others


def _is_session(path: str) -> bool:
    """Whether it is a folder of this user that is named as Ray names a session, and not reached through a symlink."""
    named = traces.SESSION.fullmatch(os.path.basename(path)) and os.path.realpath(path) == path
    return bool(named) and traces.own(path, "session") is not None


def _working_in(found: Snapshot, session: str) -> list[int]:
    return [pid for pid in found.table if traces.session_of(pid) == session]


# Caches in the tree.


def _find_caches(found: Snapshot, settings: Mapping[str, str]) -> tuple[Items, Items]:
    """Entries of caches in the tree. They are left alone while any job of the tree runs, as it may use each of them."""
    entries = caches.entries(found.root, found.job["folder"], {**_variables(found), **settings})
    listed = [_path_item(kind, path, reason, size=_size(path), owner="") for kind, path, reason in entries]
    unique = list({one["key"]: one for one in listed}.values())
    busy = _running_job(found.root)
    if busy is None:
        return unique, []
    reason = phrase("job {id} of this tree runs, and may use it", id=busy)
    return [], [dict(one, why=reason) for one in unique]


def _variables(found: Snapshot) -> dict[str, str]:
    """The job's variables that may say where it keeps caches: as noted at its start, and as its processes have them."""
    known = dict(found.job.get("variables", {}))
    for pid in sorted(found.own):
        known.update(variables.shown(variables.of_process(pid)))
    return known


def _running_job(root: str) -> str | None:
    """The id of a job of the tree that has not ended."""
    return next((job["id"] for job in folder.all_jobs(root) if job["state"] in folder.NOT_OVER), None)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of what is at `path` itself, no link followed; None where there is nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _size(path: str) -> int:
    """Bytes of a file, or of what is below a folder; of a very full one only its first entries."""
    try:
        total = os.lstat(path).st_size
    except OSError:
        return 0
    left = _MOST_ENTRIES
    for above, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size
            except OSError:
                continue
        left -= len(names)
        if left < 0:
            break
    return total


def is_free(found: Snapshot, one: Item) -> bool:
    """Whether an item is still the thing that was listed, and nobody holds it now: asked right before its removal."""
    kind, path = one["kind"], one["what"]
    if list(_identity(path) or ()) != list(one["identity"]):
        return False
    if kind == "session":
        return _is_session(path) and not _working_in(found, path)
    if kind in ("cache", "lock"):
        free = caches.is_inside(path, found.root, found.job["folder"]) and _running_job(found.root) is None
        return free and (kind == "cache" or locks.is_free(path))
    status = traces.own(path, kind)
    if status is None or _holders_of(found, kind, path, status, traces.sockets_by_path()):
        return False
    return kind == "shm" or _nobody_answers(path)


def _nobody_answers(path: str) -> bool:
    """Whether a socket refuses a connection. Its holder may be in another container, not visible in /proc."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(0.5)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
