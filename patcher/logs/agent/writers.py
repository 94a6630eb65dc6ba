"""Which processes have a file open for writing, according to /proc.

`/proc/PID/fd/3` is a link to what descriptor 3 of a process is, and `/proc/PID/fdinfo/3` has its flags. Only root can
read those of other users' processes, so a writer that belongs to another user is not found.
"""

from __future__ import annotations

import os
from typing import Iterable, Iterator


def descriptors(pid: int) -> list[tuple[int, str]]:
    """The open descriptors of a process: number and target, such as `pipe:[81]`. Empty where they cannot be read."""
    folder = f"/proc/{pid}/fd"
    found = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        try:
            found.append((int(name), os.readlink(f"{folder}/{name}")))
        except OSError:
            continue
    return found


def is_open_for_writing(pid: int, number: int) -> bool:
    """Whether a descriptor of a process is open for writing; False if it has been closed meanwhile."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as stream:
            flags = next((line for line in stream if line.startswith("flags:")), "flags: 0")
    except OSError:
        return False
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def writers(file: os.stat_result, pids: Iterable[int]) -> Iterator[int]:
    """Those of `pids` that have this file open for writing, under any name."""
    for pid in pids:
        if any(_leads_to(pid, number, file) and is_open_for_writing(pid, number) for number, _ in descriptors(pid)):
            yield pid


def _leads_to(pid: int, number: int, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), file)
    except OSError:
        return False
