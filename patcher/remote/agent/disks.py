"""Room on the disk for this user: by the file system, and by a quota where asking for it is cheap."""

from __future__ import annotations

import os
import shutil
from typing import Any

from patcher.remote.agent.facts import Untold, run

_QUOTA_SECONDS = 0.8
_SLOW_TO_ASK = ("nfs", "nfs4", "cifs", "fuse.sshfs")


def room(path: str) -> dict[str, Any]:
    """`free`, `size` in bytes and `inodes` where `path` is or would be; None where the file system does not say."""
    at = nearest(path)
    found = os.statvfs(at)
    return {
        "free": found.f_bavail * found.f_frsize if found.f_blocks else None,
        "size": found.f_blocks * found.f_frsize if found.f_blocks else None,
        "inodes": found.f_favail if found.f_files else None,
    }


def nearest(path: str) -> str:
    """The nearest folder upwards that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def mount(path: str) -> tuple[str, str]:
    """The type of the file system that `path` would be on, and its device as mount shows it."""
    device = os.stat(nearest(path)).st_dev
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return parse_mounts(file.read(), f"{os.major(device)}:{os.minor(device)}")


def parse_mounts(text: str, device: str) -> tuple[str, str]:
    """Type and source of the mount with this device number; empty where there is none."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        if before.split(" ")[2:3] == [device]:
            kind, source = (*after.split(" "), "", "")[:2]
            return kind, source
    return "", ""


def quota(path: str) -> int | None:
    """Bytes that this user's quota leaves at `path`; None where there is no quota."""
    kind, source = mount(path)
    if kind == "lustre" and shutil.which("lfs"):
        command = ["lfs", "quota", "-q", "-u", str(os.getuid()), nearest(path)]
        return parse_quota(run(command, _QUOTA_SECONDS).out, "")
    if kind in _SLOW_TO_ASK or shutil.which("quota") is None:
        return None
    try:
        return parse_quota(run(["quota", "-w", "-p", "-l"], _QUOTA_SECONDS).out, source)
    except Untold:
        return None


def parse_quota(text: str, source: str) -> int | None:
    """Bytes left by the table of `quota -wp` or `lfs quota -q`: name, KiB used, soft and hard limit, …

    Of several file systems, that of `source`.
    """
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 4 or (source and fields[0] != source):
            continue
        numbers = [field.rstrip("*") for field in fields[1:4]]
        if all(number.isdigit() for number in numbers):
            used, soft, hard = map(int, numbers)
            limit = hard or soft
            return max(0, limit - used) << 10 if limit else None
    return None
