"""What this user may use of this machine: CPUs and memory within control groups, and room on a disk within quotas.

Containers and Slurm limit a process by control groups; `os.cpu_count` and /proc/meminfo show the whole machine.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import Any, Iterator

from patcher.remote.agent.facts import UnknownFact, run

_UNLIMITED = 1 << 60
"""Bytes from which on a limit is none: version 1 of control groups tells 9223372036854771712 for no limit."""
_MOUNT = "/sys/fs/cgroup"
_QUOTA_SECONDS = 0.8
"""Seconds for a program that tells quotas. A guess; the survey gives all of it 1.2 s."""
_SLOW_TO_ASK = ("nfs", "nfs4", "cifs", "fuse.sshfs")
"""File systems whose server `quota` would ask over the network, for longer than that where it is busy."""


def cpus() -> int:
    """CPUs that this process may use: by its affinity, and by the quotas of its control groups."""
    try:
        own = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        own = os.cpu_count() or 1
    return max(1, min([own, *_quotas()]))


def memory() -> int | None:
    """Bytes of memory that this process may use; None where nothing tells."""
    total = parse_meminfo(_text("/proc/meminfo")).get("MemTotal")
    return min([limit for limit in (total, *_limits()) if limit is not None], default=None)


def available() -> int | None:
    """Bytes of memory that are not in use on this machine."""
    return parse_meminfo(_text("/proc/meminfo")).get("MemAvailable")


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name, of lines such as `MemTotal:       131072 kB`."""
    return {name: int(count) << 10 for name, count in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}


def parse_groups(text: str) -> dict[str, str]:
    """The path of this process's group by controller, of /proc/self/cgroup.

    `4:cpu,cpuacct:/job` is a line of version 1, `0::/user.slice` that of version 2, whose controller is "" here.
    """
    groups = {}
    for line in text.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def parse_cpu_quota(text: str) -> int | None:
    """Whole CPUs, rounded up, by `cpu.max`: `150000 100000`, µs of each period in µs, are 2. None for no limit."""
    quota, _, period = text.strip().partition(" ")
    if not quota.lstrip("-").isdigit() or int(quota) <= 0:
        return None
    return -(-int(quota) // int(period or 100_000))


def parse_limit(text: str) -> int | None:
    """Bytes by `memory.max`; None where there is no limit (`max`)."""
    text = text.strip()
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None


def _quotas() -> Iterator[int]:
    for folder in _folders("cpu"):
        # Version 1 keeps the two numbers in two files, and has -1 for no limit.
        legacy = f"{_text(f'{folder}/cpu.cfs_quota_us').strip()} {_text(f'{folder}/cpu.cfs_period_us').strip()}"
        for text in (_text(f"{folder}/cpu.max"), legacy):
            quota = parse_cpu_quota(text)
            if quota is not None:
                yield quota


def _limits() -> Iterator[int]:
    for folder in _folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = parse_limit(_text(f"{folder}/{name}"))
            if limit is not None:
                yield limit


def _folders(controller: str) -> Iterator[str]:
    """Folders of this process's control group and of all above it: each may have a limit.

    In a container /sys/fs/cgroup is often its own group, while /proc/self/cgroup has the path on the host: folders that
    do not exist are among these.
    """
    groups = parse_groups(_text("/proc/self/cgroup"))
    for mount, path in ((_MOUNT, groups.get("", "")), (f"{_MOUNT}/{controller}", groups.get(controller, ""))):
        parts = [part for part in path.split("/") if part and part != ".."]
        for count in range(len(parts), -1, -1):
            yield "/".join([mount, *parts[:count]])


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def room(path: str) -> dict[str, Any]:
    """Of the file system of `path`, which need not exist: `free` and `size` in bytes, and free `inodes`.

    None for what it does not tell: some network file systems have no number of inodes, or of blocks.
    """
    at = nearest(path)
    found = os.statvfs(at)
    return {
        "free": found.f_bavail * found.f_frsize if found.f_blocks else None,
        "size": found.f_blocks * found.f_frsize if found.f_blocks else None,
        "inodes": found.f_favail if found.f_files else None,
    }


def nearest(path: str) -> str:
    """The folder itself, else the nearest one above it that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def mount(path: str) -> tuple[str, str]:
    """The type of the file system that `path` is or would be on, and its source: ("nfs4", "filer:/home").

    Empty texts where it is not listed, as with btrfs, whose files have other device numbers than its mount.
    """
    device = os.stat(nearest(path)).st_dev
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return parse_mounts(file.read(), f"{os.major(device)}:{os.minor(device)}")


def parse_mounts(text: str, device: str) -> tuple[str, str]:
    """Type and source of the mount with this device number, of /proc/self/mountinfo; empty where there is none.

    A line is `36 35 98:0 /mnt1 /mnt rw,noatime master:1 - ext3 /dev/root rw`; the device number is its third field.
    """
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
        return parse_disk_quota(run(command, _QUOTA_SECONDS).out, "")
    if kind in _SLOW_TO_ASK or shutil.which("quota") is None:
        return None
    try:
        return parse_disk_quota(run(["quota", "-w", "-p", "-l"], _QUOTA_SECONDS).out, source)
    except UnknownFact:
        return None


def parse_disk_quota(text: str, source: str) -> int | None:
    """Bytes left, by the table of `quota -w -p` or `lfs quota -q`; with `source`, by the line of that file system.

    A line is `/dev/sda1  91200*  90000 100000  0 …`: name, KiB used (`*`: over the soft limit), soft and hard limit, of
    which 0 is none. None where there is no limit.
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
