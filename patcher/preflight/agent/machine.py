"""The machine itself: shared memory, limits, and the folder that Triton caches in. Looks only."""

from __future__ import annotations

import os
import time
from typing import Any

from patcher.messages import phrase

SHM = 1 << 30
FILES = 8192
PROCESSES = 4096
"""What Ray, data loaders and NCCL need at the least: bytes in /dev/shm, open files, processes and threads."""
HOME_CACHE = "~/.triton/cache"


def limits() -> dict[str, Any]:
    """One verdict for /dev/shm and the limits of this user."""
    import resource

    started = time.monotonic()
    shm = _total("/dev/shm")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    fields = {
        "shm": "-" if shm is None else f"{shm / (1 << 30):.1f} GiB",
        "files": _limit(files),
        "processes": _limit(processes),
    }
    told = phrase(
        "/dev/shm {shm}, {files} open {files:file|files}, {processes} {processes:process|processes}", **fields
    )
    fix = None
    if shm is None or shm < SHM:
        fix = phrase("give the container more shared memory: --shm-size=16g; NCCL, Ray and data loaders use it")
    elif 0 <= files < FILES:
        fix = phrase("ulimit -n 65536, in the run script or for the user")
    elif 0 <= processes < PROCESSES:
        fix = phrase("ulimit -u 65536; else threads cannot be made: pthread_create failed")
    return _verdict("limits", "ok" if fix is None else "warn", told, fix, started)


def triton_cache(env: dict[str, str]) -> dict[str, Any]:
    """Whether Triton can write where it caches what it has built."""
    started = time.monotonic()
    folder = env.get("TRITON_CACHE_DIR") or os.path.expanduser(HOME_CACHE)
    at = os.path.abspath(folder)
    while not os.path.lexists(at):
        at = os.path.dirname(at)
    fix = phrase("export TRITON_CACHE_DIR=FOLDER that this user can write to")
    if not os.path.isdir(at):
        told = phrase("{folder} cannot be made: {at} is no folder", folder=folder, at=at)
        return _verdict("triton cache", "fail", told, fix, started)
    if not os.access(at, os.W_OK | os.X_OK):
        told = phrase("{folder} cannot be written: {at} belongs to somebody else", folder=folder, at=at)
        return _verdict("triton cache", "fail", told, fix, started)
    free = os.statvfs(at)
    told = phrase("{folder} can be written", folder=folder)
    if free.f_bavail * free.f_frsize < 100 << 20:
        told = phrase("{folder}: the disk is full", folder=folder)
        return _verdict("triton cache", "fail", told, fix, started)
    return _verdict("triton cache", "ok", told, None, started)


def _total(folder: str) -> int | None:
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def _limit(value: int) -> str:
    return "∞" if value < 0 else f"{value:,}"


def _verdict(name: str, status: str, detail: Any, fix: Any, started: float) -> dict[str, Any]:
    seconds = time.monotonic() - started
    return {"name": name, "status": status, "seconds": seconds, "detail": detail, "fix": fix, "values": {}}
