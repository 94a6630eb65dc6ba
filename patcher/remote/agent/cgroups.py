"""How many CPUs and how much memory this process may use, control groups included."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_UNLIMITED = 1 << 60
_MOUNT = "/sys/fs/cgroup"


def cpus() -> int:
    """CPUs that may be used: by affinity, and by the quota of every control group above."""
    try:
        own = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        own = os.cpu_count() or 1
    return max(1, min([own, *_quotas()]))


def memory() -> int | None:
    """Bytes of memory that may be used."""
    total = parse_meminfo(_text("/proc/meminfo")).get("MemTotal")
    return min([limit for limit in (total, *_limits()) if limit is not None], default=None)


def available() -> int | None:
    """Bytes of memory that are not in use on this machine."""
    return parse_meminfo(_text("/proc/meminfo")).get("MemAvailable")


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name."""
    return {name: int(count) << 10 for name, count in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}


def parse_groups(text: str) -> dict[str, str]:
    """The path of this process's group by controller; "" is version 2's."""
    groups = {}
    for line in text.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def parse_quota(text: str) -> int | None:
    """`cpu.max` in whole CPUs, rounded up; None where there is no limit."""
    quota, _, period = text.strip().partition(" ")
    if not quota.lstrip("-").isdigit() or int(quota) <= 0:
        return None
    return -(-int(quota) // int(period or 100_000))


def parse_limit(text: str) -> int | None:
    """`memory.max` in bytes; None where there is no limit."""
    text = text.strip()
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None


def _quotas() -> Iterator[int]:
    for folder in _folders("cpu"):
        legacy = f"{_text(f'{folder}/cpu.cfs_quota_us').strip()} {_text(f'{folder}/cpu.cfs_period_us').strip()}"
        for text in (_text(f"{folder}/cpu.max"), legacy):
            quota = parse_quota(text)
            if quota is not None:
                yield quota


def _limits() -> Iterator[int]:
    for folder in _folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = parse_limit(_text(f"{folder}/{name}"))
            if limit is not None:
                yield limit


def _folders(controller: str) -> Iterator[str]:
    """This process's group and all above it, as far as they can be seen; within a container the mount is its own."""
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
