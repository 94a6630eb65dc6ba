"""Stacks by the hook that a job's Python processes have: a signal, and what each then writes into its file."""

from __future__ import annotations

import os
import time

from patcher.jobs.agent import processes
from patcher.jobs.agent.processes import Process
from patcher.jobs.agent.runner import start_of
from patcher.jobs.agent.sitecustomize_hook import SIGNAL, TOLD, VARIABLE
from patcher.worktree import files

SECONDS = 2.0
SETTLED = 0.1
"""Seconds without a further byte after which a dump is taken for whole."""
LARGEST = 1 << 18
FOLDER = "stacks"
"""In a job's folder."""


def dump(process: Process, folder: str | None) -> tuple[str, str]:
    """What faulthandler wrote of a process, and why there is nothing.

    The signal goes only to a process that catches it, and that says in its own file that it does so for this.
    """
    path = _path(process, folder)
    try:
        before = os.stat(path).st_size
    except OSError:
        return "", "no hook"
    bit = 1 << (SIGNAL - 1)
    caught, blocked = processes.signals(process.pid)
    if not caught & bit or blocked & bit or start_of(process.pid) != process.start:
        return "", "no hook"
    try:
        os.kill(process.pid, SIGNAL)
    except OSError as error:
        return "", error.strerror or str(error)
    return _written(path, before)


def variables(process: Process, folder: str | None) -> dict[str, str]:
    """Which rank a process is, by its own file; nothing where it has none."""
    try:
        with files.open_binary(_path(process, folder), follow=False) as stream:
            line = stream.read(LARGEST).partition(b"\n")[0].decode("utf-8", "replace")
            pairs = (item.partition("=") for item in line.split())
            return {name: value for name, found, value in pairs if found and name in TOLD}
    except OSError:
        return {}


def _path(process: Process, folder: str | None) -> str:
    folder = processes.variables(process.pid, (VARIABLE,)).get(VARIABLE) or folder or os.devnull
    return os.path.join(folder, f"{os.uname()[1]}.{process.pid}.{process.start}")


def _written(path: str, before: int) -> tuple[str, str]:
    deadline = time.monotonic() + SECONDS
    size, changed = before, time.monotonic()
    while time.monotonic() < deadline and (size == before or time.monotonic() - changed < SETTLED):
        time.sleep(0.02)
        try:
            now = os.stat(path).st_size
        except OSError:
            break
        if now != size:
            size, changed = now, time.monotonic()
    if size == before:
        return "", "it did not answer"
    try:
        with files.open_binary(path, follow=False) as stream:
            stream.seek(before)
            return stream.read(LARGEST).decode("utf-8", "replace"), ""
    except OSError as error:
        return "", error.strerror or str(error)
