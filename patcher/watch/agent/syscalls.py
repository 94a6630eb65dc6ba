"""System calls that processes wait in, by number."""

from __future__ import annotations

import platform

_X86: dict[int, str] = {
    0: "read",
    1: "write",
    7: "poll",
    16: "ioctl",
    17: "pread",
    19: "readv",
    20: "writev",
    23: "select",
    35: "nanosleep",
    42: "connect",
    43: "accept",
    44: "sendto",
    45: "recvfrom",
    46: "sendmsg",
    47: "recvmsg",
    61: "wait",
    72: "fcntl",
    73: "flock",
    74: "fsync",
    130: "sigsuspend",
    202: "futex",
    220: "semop",
    230: "nanosleep",
    232: "epoll",
    247: "wait",
    257: "open",
    270: "select",
    271: "poll",
    281: "epoll",
    288: "accept",
    441: "epoll",
    449: "futex",
}
_ARM: dict[int, str] = {
    22: "epoll",
    25: "fcntl",
    29: "ioctl",
    32: "flock",
    56: "open",
    63: "read",
    64: "write",
    65: "readv",
    66: "writev",
    67: "pread",
    72: "select",
    73: "poll",
    82: "fsync",
    95: "wait",
    98: "futex",
    101: "nanosleep",
    115: "nanosleep",
    133: "sigsuspend",
    192: "semop",
    202: "accept",
    203: "connect",
    206: "sendto",
    207: "recvfrom",
    211: "sendmsg",
    212: "recvmsg",
    242: "accept",
    260: "wait",
    441: "epoll",
    449: "futex",
}
ON_FILE = (
    *("read", "write", "pread", "readv", "writev", "ioctl", "fsync", "flock", "fcntl"),
    *("connect", "accept", "sendto", "recvfrom", "sendmsg", "recvmsg"),
)
"""Calls whose first argument is a file descriptor."""


def name(number: int) -> str | None:
    """What a system call is called here; None for one that nobody waits in."""
    return (_ARM if platform.machine() in ("aarch64", "arm64") else _X86).get(number)
