"""Where jobs are kept below the tree, and what a job's folder says of it."""

from __future__ import annotations

import json
import os
import platform
import stat
import time
from typing import Any, Dict

from patcher.agent.jobs import processes
from patcher.agent.place import OURS
from patcher.agent.said import Refusal, phrase

JOBS = os.path.join(OURS, "jobs")
SOCKET = "tmux"
"""The socket of a job's tmux, in its folder. It is named from there: a whole path may be too long for a socket."""
STARTING = 60.0
"""Seconds after which a job that has not begun counts as lost."""
SILENT = 120.0
"""Seconds without a sign of life after which a job on another machine counts as lost."""

Told = Dict[str, Any]


def jobs_folder(root: str) -> str:
    return os.path.join(root, JOBS)


def ids(root: str) -> list[str]:
    """The jobs of the tree, oldest first."""
    folder = jobs_folder(root)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if os.path.isfile(os.path.join(folder, name, "job.json")))


def folder_of(root: str, wanted: str | None) -> str:
    """The folder of the job whose id begins or ends as `wanted` says; of the newest where nothing is said."""
    known = ids(root)
    if not known:
        raise Refusal("none", phrase("{path}: no job has been started there", path=root))
    matching = known[-1:] if wanted is None else [name for name in known if name == wanted]
    if not matching and wanted:
        matching = [name for name in known if name.startswith(wanted) or name.endswith(wanted)]
    if len(matching) != 1:
        title = phrase("there is no job {id}", id=repr(wanted))
        if matching:
            title = phrase("more than one job is called {id}", id=repr(wanted))
        advice = phrase("Jobs there, newest first: {ids}", ids=", ".join((matching or known)[:-9:-1]))
        raise Refusal("unknown", title, None, advice)
    return os.path.join(jobs_folder(root), matching[0])


def here() -> Told:
    """What tells this machine, since it was started, from any other that sees the same disk."""
    found = {"host": platform.node(), "boot": "", "space": ""}
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            found["boot"] = stream.read().strip()
        found["space"] = os.readlink("/proc/self/ns/pid")
    except OSError:
        pass
    return found


def look(folder: str) -> Told:
    """What is known of a job now: what was noted, and `state`.

    starting, running, ended, stopped, lost: it is gone and nobody noted how it ended. `watched` is false where it runs
    and nobody will note its ending; `elsewhere` where it runs on another machine that shares the disk.
    """
    job = read(os.path.join(folder, "job.json")) or {}
    end = read(os.path.join(folder, "end.json"))
    stopped = os.path.exists(os.path.join(folder, "stop.json"))
    told: Told = dict(job, id=os.path.basename(folder), folder=folder, watched=True, elsewhere=None, end=end)
    told["state"] = _state(folder, job, end, stopped, told)
    if told["state"] == "lost" and (again := read(os.path.join(folder, "end.json"))) is not None:
        told["end"], told["state"] = again, "stopped" if stopped else "ended"
    told["size"] = _size(os.path.join(folder, "log"))
    told["now"] = _now(told)
    told["free"] = _free(folder)
    told["tmux"] = os.path.exists(os.path.join(folder, SOCKET))
    return told


def _state(folder: str, job: Told, end: Told | None, stopped: bool, told: Told) -> str:
    if end is not None:
        return "stopped" if stopped else "ended"
    if job.get("process") is None:
        return "starting" if time.time() - job.get("ordered", 0) < STARTING else "lost"
    there = job.get("machine", {})
    now = here()
    if there.get("host") != now["host"] or (there.get("boot") == now["boot"] and there.get("space") != now["space"]):
        told["elsewhere"] = there.get("host")
        quiet = time.time() - _changed(os.path.join(folder, "times"), job)
        return "running" if quiet < SILENT else "lost"
    if there.get("boot") == now["boot"]:
        told["watched"] = processes.alive(job["runner"])
        if told["watched"] or processes.alive(job["process"]):
            return "running"
    return "stopped" if stopped else "lost"


def _now(told: Told) -> float:
    """Seconds from the job's start to now, or to its end."""
    if told["end"] is not None:
        return float(told["end"]["seconds"])
    if "clock" in told and told["machine"] == here():
        return time.monotonic() - float(told["clock"])
    return max(0.0, time.time() - float(told.get("started") or told.get("ordered") or time.time()))


def _changed(path: str, job: Told) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return float(job.get("started", 0))


def read(path: str) -> Any:
    """The JSON in a file; None where there is none that can be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def _free(path: str) -> int | None:
    """Bytes that are free for this user on the disk that holds `path`."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def make(root: str, name: str) -> str:
    """A new folder for a job; nobody else may read it. No link is followed on the way."""
    at = root
    for part in (*JOBS.split(os.sep), name):
        at = os.path.join(at, part)
        try:
            os.mkdir(at, 0o777 if part == ".uky-patch" else 0o700)
        except FileExistsError:
            if at.endswith(name) or not stat.S_ISDIR(os.lstat(at).st_mode):
                raise
    return at
