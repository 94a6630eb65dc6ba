"""Processes known by a variable in their environment, and waiting for what is to come."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

MARK = "UKY_CLUSTER"
"""Of everything in a cluster: the process that made it, and a number."""
NODE = "UKY_NODE"


def wait_for(holds: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait until it holds; fails with `what` where it does not come to that."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def marked(**marks: str) -> list[int]:
    """The processes whose environment has all these variables."""
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted <= set((path / "environ").read_bytes().split(b"\0")):
                    found.append(int(path.name))
    return found


def end(**marks: str) -> None:
    """Kill these processes, and wait until none is left."""

    def gone() -> bool:
        left = marked(**marks)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_for(gone, f"the end of {marks}")
