"""Notes what a job's processes make outside of its folder: sessions of Ray, shared memory, sockets.

When all processes have ended, nothing else tells whose these are. The program that watches the job (`runner`) loads a
copy of this file from the job's folder, so it imports the standard library alone.
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
"""Seconds between two looks for something new. A guess: a process that lives shorter rarely leaves something."""
PATIENCE = 30.0
"""Seconds for which the holder of a new thing is searched: it may be made before it is opened. A guess."""
SETTLED = 1 << 27
"""Nanoseconds, about 0.13 s, for which a folder's time of change is not trusted: a second file that comes in the same
tick of the kernel's clock, up to 10 ms, does not change it."""
SHARED, SOCKETS = "/dev/shm", "/tmp"
SEGMENT = re.compile(
    r"nccl-\w+|psm_\w+|torch_\d+_\d+_\d+|cuda\.shm\.[0-9a-f.]+|plasma\w*|__KMP_REGISTERED_LIB_\d+_\d+|sem\.mp-\w+"
)
"""Names that NCCL, Python, torch, CUDA, Ray and OpenMP give their shared memory: `nccl-X2b9Qe`, `psm_4f1c02aa`."""
SOCKET = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"|verl_vllm_zmq_\w+\.ipc|rl-colocate-zmq-[\w.-]+\.sock"
)
"""Names that vLLM (a UUID) and verl give their sockets."""
SESSION = re.compile(r"session_\d{4}-\d\d-\d\d_[\d_-]+")
"""The name that Ray gives the folder of a session: `session_2026-11-23_00-58-44_123456_4711`."""
_OPTION = re.compile(rb"--session[-_](?:dir|folder)=([^\0]+)")
_IN_PATH = re.compile(rb"(/[^\0]*?/session_\d{4}-\d\d-\d\d_[\d_-]+)(?:/|\0|$)")
_MOST = 64 << 20
"""The most characters of one file that are read: /proc/PID/maps with very many libraries has 10 MB."""
_HELD = re.compile(r"socket:\[(\d+)\]")
"""Where a link in /proc/PID/fd leads that is a socket; the number is its inode."""

Identity = Tuple[int, int]
"""Device and inode."""


class Traces:
    """Looks for new things while a job runs, and notes those that one of its processes holds.

    `folder` is the job's, `watcher` the process that all processes of the job descend from, `environment` the job's
    variables. `key` seals the notes, so that a line which somebody else writes into the file counts for nothing.
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
        """Note what is new and held by the job. `now` is seconds on any clock. Costs little where nothing is new."""
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
        """Things of the kinds that are noted, in folders where something has come or gone since the last look."""
        found = set()
        places = [(SHARED, "shm", SEGMENT), (SOCKETS, "socket", SOCKET)]
        for place, kind, pattern in [*places, *((ray, "session", SESSION) for ray in self._rays)]:
            changed = _changed(place)
            if self._changed.get(place) == changed:
                continue
            self._changed[place] = changed if time.time_ns() - changed > SETTLED else -1
            for name in names_in(place):
                if pattern.fullmatch(name):
                    status = own(os.path.join(place, name), kind)
                    if status is not None:
                        found.add((kind, os.path.join(place, name), status.st_dev, status.st_ino))
        return found


def own(path: str, kind: str) -> os.stat_result | None:
    """The status of `path`, if it is of this kind and belongs to this user; no symlink is followed."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    right = {"shm": stat.S_ISREG, "socket": stat.S_ISSOCK, "session": stat.S_ISDIR}[kind]
    return status if status.st_uid == os.getuid() and right(status.st_mode) else None


def below(pid: int) -> list[int]:
    """The processes that descend from one."""
    parents: dict[int, list[int]] = {}
    for name in names_in("/proc"):
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
    """What the processes hold, each with one that holds it: files by device and inode, sockets by their inode, sessions
    of Ray by path.
    """
    found: dict[Any, int] = {}
    for pid in pids:
        session = session_of(pid)
        keys: set[Any] = {session} if session is not None else set()
        for key in keys | open_in(pid) | mapped_in(pid):
            found.setdefault(key, pid)
    return found


def session_of(pid: int) -> str | None:
    """The folder of the session that a process of Ray was started for, as its command line has it; None for others."""
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
    for name in names_in(folder):
        try:
            match = _HELD.fullmatch(os.readlink(os.path.join(folder, name)))
            status = os.stat(os.path.join(folder, name))
        except OSError:
            continue
        found.add(int(match.group(1)) if match else (status.st_dev, status.st_ino))
    return found


def mapped_in(pid: int) -> set[Identity]:
    """Files that a process has mapped into its memory, by device and inode.

    A line of /proc/PID/maps is `7f1c…-7f1d… rw-s 00000000 00:19 1234  /dev/shm/psm_4f1c02aa`.
    """
    found = set()
    for line in lines_of(f"/proc/{pid}/maps"):
        fields = line.split(None, 5)
        if len(fields) > 5 and fields[4] != "0":
            major, _, minor = fields[3].partition(":")
            found.add((os.makedev(int(major, 16), int(minor, 16)), int(fields[4])))
    return found


def sockets_by_path() -> dict[str, int]:
    """Sockets of this network namespace that listen at a path, with their inodes.

    A line of /proc/net/unix is `ffff…: 00000002 00000000 00010000 0001 01 28061 /tmp/x.sock`; the fourth field is its
    flags, of which 00010000 is listening.
    """
    found: dict[str, int] = {}
    for line in lines_of("/proc/self/net/unix")[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7].startswith("/") and fields[3] == "00010000":
            found[fields[7]] = int(fields[6])
    return found


def seal(folder: str, note: dict[str, Any], key: bytes) -> str:
    """The seal of a note, which takes the key: an HMAC over the note, the job's id and this start of the machine."""
    bound = [note[name] for name in ("kind", "path", "device", "inode", "pid")]
    text = json.dumps([os.path.basename(folder), *lines_of("/proc/sys/kernel/random/boot_id"), *bound])
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _changed(folder: str) -> int:
    """When an entry of the folder last came or went, in nanoseconds; 0 where that is unknown."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def names_in(folder: str) -> list[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def lines_of(path: str) -> list[str]:
    """The lines of a regular file; none of anything else, such as a pipe, at which a reader would wait."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST).splitlines() if stat.S_ISREG(os.fstat(fd).st_mode) else []
    except OSError:
        return []
