"""What /proc tells of one process: who it is, what it waits for in the kernel, and what may not be read."""

from __future__ import annotations

import os
import re
from typing import Any

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process
from patcher.watch.agent import rays, syscalls

VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RAY_LOCAL_WORLD_SIZE", "GROUP_RANK", "WG_PREFIX"),
    *("MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "RAY_JOB_ID", "VLLM_DP_RANK"),
)
"""Variables that are looked at; no other is."""
LONGEST = 300
_TRACE = 1 << 19
"""CAP_SYS_PTRACE."""


def facts(process: Process) -> dict[str, Any]:
    """All that /proc tells without touching the process."""
    pid = process.pid
    status = processes.status(pid)
    shown = title(pid)
    told: dict[str, Any] = {
        "pid": pid,
        "parent": process.parent,
        "start": process.start,
        "name": process.name,
        "title": shown,
        "cpu": process.cpu,
        "memory": process.memory,
        "state": status.get("State", "?")[:1],
        "threads": int(status.get("Threads", "1")),
        "user": processes.user_of(pid),
        "python": is_python(pid, process.name, shown),
        "system": rays.is_system(process.name, shown),
        "env": processes.variables(pid, VARIABLES),
        "waits": _waits(pid),
        "kernel": _kernel(pid),
    }
    told["closed"] = closed(pid, status)
    return told


def title(pid: int) -> str:
    """The command line of a process, or what it has made of it."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            parts = stream.read(8192).rstrip(b"\0 ").split(b"\0")
    except OSError:
        return ""
    return b" ".join(part for part in parts if part).decode("utf-8", "replace").strip()[:LONGEST]


def is_python(pid: int, name: str, shown: str) -> bool:
    """Whether a Python runs in the process, as far as can be told."""
    try:
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy")):
            return True
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
            return any("libpython3" in line for line in stream)
    except OSError:
        first = os.path.basename(shown.partition(" ")[0])
        return first.startswith("python") or name.startswith("python") or shown.startswith(("ray::", "VLLM::"))


def closed(pid: int, status: dict[str, str]) -> str:
    """Why another process may not look into this one: user, capabilities, yama; empty where it may."""
    own = processes.status(os.getpid())
    if int(own.get("CapEff", "0"), 16) & _TRACE:
        return ""
    if status.get("Uid", "").split() != own.get("Uid", "").split():
        return "user"
    if int(status.get("CapPrm", "0"), 16) & ~int(own.get("CapPrm", "0"), 16):
        return "capabilities"
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as stream:
            if stream.read().strip() not in ("", "0"):
                return "yama"
    except OSError:
        pass
    return "" if os.access(f"/proc/{pid}/environ", os.R_OK) else "closed"


def _waits(pid: int) -> dict[str, Any]:
    """Where the main thread is in the kernel: `wchan`, the system call and the file that it is about."""
    told: dict[str, Any] = {"wchan": _line(pid, "wchan").strip("0"), "call": None, "file": None}
    parts = _line(pid, "syscall").split()
    if len(parts) > 2 and parts[0].lstrip("-").isdigit():
        told["call"] = syscalls.name(int(parts[0]))
        if told["call"] in syscalls.ON_FILE:
            try:
                told["file"] = os.readlink(f"/proc/{pid}/fd/{int(parts[1], 16)}")
            except OSError:
                pass
    return told


def _kernel(pid: int) -> list[str]:
    """The kernel's stack of the main thread, innermost first; empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/stack", encoding="ascii", errors="replace") as stream:
            return re.findall(r"\] ([\w.]+)\+", stream.read())[:12]
    except OSError:
        return []


def _line(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="ascii", errors="replace") as stream:
            return stream.read(200).strip()
    except OSError:
        return ""
