"""What a process waits for, told by the kernel alone: where its Python cannot be looked into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patcher.i18n import NOTHING, Phrase, Phrases, listed, phrase
from patcher.watch.stacks.processes import Process

_CALLS: Mapping[str, Phrase] = {
    "futex": phrase("waits for a lock or another thread"),
    "wait": phrase("waits for a process that it has started"),
    "nanosleep": phrase("sleeps"),
    "poll": phrase("waits for an event"),
    "epoll": phrase("waits for an event"),
    "select": phrase("waits for an event"),
    "sigsuspend": phrase("waits for a signal"),
    "flock": phrase("waits for a file lock"),
    "fcntl": phrase("waits for a file lock"),
    "semop": phrase("waits for a lock"),
    "accept": phrase("waits for somebody to connect"),
    "fsync": phrase("waits for a disk"),
}
_CHANNELS: tuple[tuple[str, str], ...] = (
    ("futex", "futex"),
    ("pipe_read", "read"),
    ("pipe_write", "write"),
    ("pipe_wait", "read"),
    ("do_wait", "wait"),
    ("nanosleep", "nanosleep"),
    ("ep_poll", "epoll"),
    ("poll_schedule", "poll"),
    ("do_sys_poll", "poll"),
    ("do_poll", "poll"),
    ("do_select", "select"),
    ("sigsuspend", "sigsuspend"),
    ("flock", "flock"),
    ("locks_lock", "flock"),
    ("posix_lock", "fcntl"),
    ("fcntl_setlk", "fcntl"),
    ("inet_csk_accept", "accept"),
    ("sk_wait_data", "recvfrom"),
    ("wait_woken", "recvfrom"),
    ("unix_stream_read", "recvfrom"),
    ("inet_stream_connect", "connect"),
    ("inet_wait_for_connect", "connect"),
    ("folio_wait", "disk"),
    ("io_schedule", "disk"),
    ("nfs", "disk"),
    ("rpc_wait", "disk"),
    ("fuse", "disk"),
    ("nvidia", "gpu"),
    ("uvm_", "gpu"),
)
"""Parts of the names of places in the kernel, and the call that waits there."""


def kernel_call(process: Process) -> str | None:
    """The system call that the main thread waits in, or what stands for it; None where nothing tells."""
    if process.waits.get("call"):
        return str(process.waits["call"])
    for place in (str(process.waits.get("wchan") or ""), *process.kernel):
        for part, name in _CHANNELS:
            if part in place:
                return name
    return None


def waits_for(process: Process) -> Phrase | Phrases:
    """What the kernel says of a process, in words; nothing where it may not be read."""
    if process.stopped:
        return phrase("is stopped by a signal")
    if process.state == "D":
        return phrase("waits for a disk or a device")
    if process.state == "R":
        return phrase("is on a processor")
    name = kernel_call(process)
    file = str(process.waits.get("file") or "")
    if file.startswith("pipe:"):
        return _pipe(process, str(name))
    if file.startswith("socket:"):
        return _socket(process)
    if name in ("read", "readv", "pread", "disk") and file:
        return phrase("reads {file}", file=file)
    return {
        "read": phrase("waits for another process"),
        "write": phrase("waits for another process"),
        "recvfrom": phrase("waits for the network or another process"),
        "recvmsg": phrase("waits for the network or another process"),
        "connect": phrase("connects"),
        "disk": phrase("waits for a disk or a device"),
        "gpu": phrase("waits for the GPU"),
        **_CALLS,
    }.get(name or "", NOTHING)


def _pipe(process: Process, name: str) -> Phrase:
    ends: list[list[Any]] = list(process.waits.get("ends") or [])
    others = sorted({str(pid) for pid, writes in ends if writes == name.startswith("read")})
    if not others:
        return phrase("waits at a pipe")
    if name.startswith("write"):
        return phrase("waits at a full pipe that process {pids} reads", pids=", ".join(others[:4]))
    return phrase("waits at an empty pipe that process {pids} writes", pids=", ".join(others[:4]))


def _socket(process: Process) -> Phrase:
    peer = process.waits.get("peer")
    if peer is None:
        return phrase("waits for another process")
    return phrase("waits for {peer} ({state})", peer=peer["peer"], state=listed(peer["state"]))
