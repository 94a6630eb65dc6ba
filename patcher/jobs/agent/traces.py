"""Notes what a job's processes make outside of its folder: sessions of Ray, shared memory, sockets.

When all processes are gone nothing else tells whose these are. The file is copied into the job's folder and loaded from
there by the program that watches the job, so it imports the standard library alone: a host has no `patcher` there.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
import time
from typing import Any, Tuple

NOTE = "traces"
"""In a job's folder: one line of JSON for each thing: `kind`, `path`, `device`, `inode`, and the `pid` that had it."""
EVERY = 1.0
"""Seconds between looks for something new: one that lives shorter leaves nothing behind."""
PATIENCE = 30.0
"""Seconds for which it is tried to find out whose a new thing is: it may be made before it is opened. A guess."""
SETTLED = 1 << 27
"""Nanoseconds, about 0.13 s, for which a folder's time of change is not trusted: a file that comes in the same tick of
the kernel's clock, up to 10 ms, does not change it."""
SHARED, SOCKETS = "/dev/shm", "/tmp"
SEGMENT = re.compile(
    r"nccl-\w+|psm_\w+|torch_\d+_\d+_\d+|cuda\.shm\.[0-9a-f.]+|plasma\w*|__KMP_REGISTERED_LIB_\d+_\d+|sem\.mp-\w+"
)
"""What NCCL, Python, torch, CUDA, Ray and OpenMP call their shared memory."""
SOCKET = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"|verl_vllm_zmq_\w+\.ipc|rl-colocate-zmq-[\w.-]+\.sock"
)
"""What vLLM and verl call their sockets."""
SESSION = re.compile(r"session_\d{4}-\d\d-\d\d_[\d_-]+")
_OPTION = re.compile(rb"--session[-_](?:dir|folder)=([^\0]+)")
_IN_PATH = re.compile(rb"(/[^\0]*?/session_\d{4}-\d\d-\d\d_[\d_-]+)(?:/|\0|$)")
_MOST = 64 << 20
"""Characters of one file that are read: the maps of a process with very many libraries have 10 MB."""
_HELD = re.compile(r"socket:\[(\d+)\]")

Identity = Tuple[int, int]
"""Device and inode."""


class Traces:
    """Looks around now and then while a job runs. `watcher` is the process that all of the job descends from.

    `key` seals the notes: what somebody else writes into the file ties nothing to the job.
    """

    def __init__(self, folder: str, watcher: int, environment: dict[str, str], key: bytes) -> None:
        self._folder, self._key = folder, key
        self._watcher = watcher
        named = (environment.get("RAY_TMPDIR"), environment.get("TMPDIR"), SOCKETS)
        self._rays = sorted({os.path.join(place, "ray") for place in named if place})
        self._changed: dict[str, int] = {}
        self._settled = self._candidates()
        self._open: dict[tuple[str, str, int, int], float] = {}
        self._at = 0.0

    def look(self, now: float) -> None:
        """Note what is new and held by the job. `now`: seconds on any clock. Costs little where nothing is new."""
        if now - self._at < EVERY:
            return
        self._at = now
        for one in self._candidates():
            if one not in self._settled:
                self._settled.add(one)
                self._open[one] = now + PATIENCE
        if not self._open:
            return
        pids = below(self._watcher)
        held, bound = held_by(pids), sockets_by_path()
        for one, until in list(self._open.items()):
            kind, path, device, inode = one
            key: Any = path if kind == "session" else bound.get(path) if kind == "socket" else (device, inode)
            if key in held:
                trace = {"kind": kind, "path": path, "device": device, "inode": inode, "pid": held[key]}
                trace["seal"] = seal(self._folder, trace, self._key)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(
                    os.open(os.path.join(self._folder, NOTE), flags, 0o600), "a", encoding="utf-8"
                ) as stream:
                    stream.write(json.dumps(trace) + "\n")
            if key in held or now > until:
                del self._open[one]

    def _candidates(self) -> set[tuple[str, str, int, int]]:
        """What there is of the kinds that are noted, where something has come or gone since the last look."""
        found = set()
        places = [(SHARED, "shm", SEGMENT), (SOCKETS, "socket", SOCKET)]
        for place, kind, pattern in [*places, *((ray, "session", SESSION) for ray in self._rays)]:
            changed = _changed(place)
            if self._changed.get(place) == changed:
                continue
            self._changed[place] = changed if time.time_ns() - changed > SETTLED else -1
            for name in _names(place):
                if pattern.fullmatch(name):
                    status = own(os.path.join(place, name), kind)
                    if status is not None:
                        found.add((kind, os.path.join(place, name), status.st_dev, status.st_ino))
        return found


def own(path: str, kind: str) -> os.stat_result | None:
    """What is at `path`, if it is of this kind and this user's; no link is followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    right = {"shm": stat.S_ISREG, "socket": stat.S_ISSOCK, "session": stat.S_ISDIR}[kind]
    return status if status.st_uid == os.getuid() and right(status.st_mode) else None


def below(pid: int) -> list[int]:
    """The processes that descend from one."""
    parents: dict[int, list[int]] = {}
    for name in _names("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    parent = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(name))
    found = list(parents.get(pid, []))
    for one in found:
        found += parents.get(one, [])
    return found


def held_by(pids: list[int]) -> dict[Any, int]:
    """What the processes hold, and one that does: files by device and inode, sockets by inode, sessions by path."""
    found: dict[Any, int] = {}
    for pid in pids:
        session = session_of(pid)
        keys: set[Any] = {session} if session is not None else set()
        for key in keys | open_in(pid) | mapped_in(pid):
            found.setdefault(key, pid)
    return found


def session_of(pid: int) -> str | None:
    """The session's folder that a process of Ray was started for; None where it is none of Ray's."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            command = stream.read(1 << 17)
    except OSError:
        return None
    found = _OPTION.search(command) or _IN_PATH.search(command)
    return os.fsdecode(found.group(1)) if found else None


def open_in(pid: int) -> set[Any]:
    """Files that a process has open, by device and inode; sockets by their inode alone."""
    folder = f"/proc/{pid}/fd"
    found: set[Any] = set()
    for name in _names(folder):
        try:
            match = _HELD.fullmatch(os.readlink(os.path.join(folder, name)))
            status = os.stat(os.path.join(folder, name))
        except OSError:
            continue
        found.add(int(match.group(1)) if match else (status.st_dev, status.st_ino))
    return found


def mapped_in(pid: int) -> set[Identity]:
    """Files that a process has mapped into its memory."""
    found = set()
    for line in lines_of(f"/proc/{pid}/maps"):
        fields = line.split(None, 5)
        if len(fields) > 5 and fields[4] != "0":
            major, _, minor = fields[3].partition(":")
            found.add((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
    return found


def sockets_by_path() -> dict[str, int]:
    """The sockets that somebody has bound to a path in this network, with their inodes."""
    found: dict[str, int] = {}
    for line in lines_of("/proc/self/net/unix")[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7].startswith("/") and fields[3] == "00010000":
            found[fields[7]] = int(fields[6])
    return found


def seal(folder: str, note: dict[str, Any], key: bytes) -> str:
    """What only who knows the key can write below a note: it binds it to the job and to this start of the machine."""
    bound = [note[name] for name in ("kind", "path", "device", "inode", "pid")]
    text = json.dumps([os.path.basename(folder), *lines_of("/proc/sys/kernel/random/boot_id"), *bound])
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _changed(folder: str) -> int:
    """When an entry last came or went, in nanoseconds."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def lines_of(path: str) -> list[str]:
    """The lines of a regular file; none of anything else, such as a pipe that nobody writes to."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST).splitlines() if stat.S_ISREG(os.fstat(fd).st_mode) else []
    except OSError:
        return []
