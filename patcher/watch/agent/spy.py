"""Stacks by py-spy: read from the memory of the process, which goes on meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, Iterable

from patcher.jobs.agent import processes
from patcher.worktree.json_text import parse_json

SECONDS = 5.0
NATIVE_SECONDS = 20.0
FRAMES = 100
THREADS = 60


def find(pids: Iterable[int], folders: Iterable[str] = ()) -> str | None:
    """The py-spy of the job's interpreter, of `folders`, or of PATH."""
    theirs = [os.path.join(folder, "py-spy") for pid in pids for folder in _folders(pid)]
    ours = [os.path.join(folder, "py-spy") for folder in folders]
    for path in dict.fromkeys([*filter(_is_ours, theirs), *ours]):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which("py-spy")


def dump(program: str, pid: int, native: bool) -> tuple[list[dict[str, Any]], str]:
    """The threads of a process, and why there are none.

    With `native` the process is held for the time that it takes; else it is not, unless its memory changes too fast.
    """
    for how in ["--native"] if native else ["--nonblocking", ""]:
        command = [program, "dump", "--pid", str(pid), "--json", *([how] if how else [])]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=NATIVE_SECONDS if native else SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [], "py-spy took too long"
        except OSError as error:
            return [], error.strerror or str(error)
        try:
            if done.returncode == 0 and (threads := _reduced(parse_json(done.stdout), pid)):
                return threads, ""
        except (ValueError, KeyError, TypeError):
            pass
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return [], next((line for line in said if line.strip()), "py-spy found no stack")[:200]


def _reduced(told: list[dict[str, Any]], pid: int) -> list[dict[str, Any]]:
    """Each thread's name, whether it is the main one, whether it runs, and its frames, innermost first."""
    threads = [
        {
            "name": thread.get("thread_name") or "",
            "main": thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread",
            "active": bool(thread.get("active")),
            "gil": bool(thread.get("owns_gil")),
            "frames": [[frame["filename"], frame["name"], frame["line"]] for frame in thread["frames"][:FRAMES]],
        }
        for thread in told
        if thread.get("pid", pid) == pid and thread.get("frames")
    ]
    return sorted(threads, key=lambda thread: not thread["main"])[:THREADS]


def _is_ours(path: str) -> bool:
    """Whether it is this user's or root's: a process of somebody else may have any program in its environment."""
    try:
        return os.stat(path).st_uid in (0, os.geteuid())
    except OSError:
        return False


def _folders(pid: int) -> list[str]:
    """Where the programs of a process's interpreter are."""
    found = []
    environment = processes.variables(pid, ("VIRTUAL_ENV", "CONDA_PREFIX"))
    found += [os.path.join(folder, "bin") for folder in environment.values()]
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            first = os.fsdecode(stream.read(4096).partition(b"\0")[0])
        if first.startswith("/"):
            found.append(os.path.dirname(first))
        found.append(os.path.dirname(os.readlink(f"/proc/{pid}/exe")))
    except OSError:
        pass
    return [folder for folder in found if folder.startswith("/")]
