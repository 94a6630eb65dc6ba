"""Whether a process of this machine is writing a file, as `/proc` tells it."""

from __future__ import annotations

import os
from pathlib import Path


def is_being_written(path: Path) -> bool | None:
    """Whether any process that may be looked into holds the file open for writing; None where that cannot be told."""
    try:
        told = path.stat()
        with os.scandir("/proc") as entries:
            processes = [entry.path for entry in entries if entry.name.isdigit()]
    except OSError:
        return None
    own = (told.st_dev, told.st_ino)
    return any(_holds(process, own) for process in processes)


def _holds(process: str, own: tuple[int, int]) -> bool:
    try:
        with os.scandir(f"{process}/fd") as entries:
            for entry in entries:
                held = entry.stat()
                if (held.st_dev, held.st_ino) == own and _writes(f"{process}/fdinfo/{entry.name}"):
                    return True
    except OSError:
        return False
    return False


def _writes(info: str) -> bool:
    for line in Path(info).read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8) & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR)
    return False
