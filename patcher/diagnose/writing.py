"""Whether a process of this machine is writing a file, as `/proc` tells it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def is_being_written(path: Path) -> bool | None:
    """Whether any process that may be looked into holds the file open for writing; None where that cannot be told."""
    try:
        told = path.stat()
        processes = [one for one in Path("/proc").iterdir() if one.name.isdigit()]
    except OSError:
        return None
    own = (told.st_dev, told.st_ino)
    return any(_holds(process, own) for process in processes)


def _holds(process: Path, own: tuple[int, int]) -> bool:
    with contextlib.suppress(OSError):
        return any(_writes(process, held, own) for held in (process / "fd").iterdir())
    return False


def _writes(process: Path, held: Path, own: tuple[int, int]) -> bool:
    with contextlib.suppress(OSError):
        told = held.stat()
        if (told.st_dev, told.st_ino) != own:
            return False
        for line in (process / "fdinfo" / held.name).read_text(encoding="ascii").splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR)
    return False
