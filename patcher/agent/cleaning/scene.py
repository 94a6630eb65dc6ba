"""All that is looked at to tell what is the job's: the job, the processes, and when the job was alive."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from patcher.agent.jobs import folder, processes
from patcher.agent.jobs.processes import Table
from patcher.agent.said import Said

SLACK = 60.0
"""Seconds after a job's end in which its processes may still have made something."""


class Scene(NamedTuple):
    """`claims`: why each process that lives is the job's, of whatever user; `mine`: those of this user."""

    root: str
    job: dict[str, Any]
    everything: Table
    claims: dict[int, Said]
    mine: frozenset[int]
    running: bool
    """Whether the job itself is at work."""
    begun: float
    ended: float
    """Seconds since 1970."""
    alone: bool
    """Whether no other job of the tree was alive in that time: else what bears no name may be that one's."""

    def in_time(self, path: str) -> bool:
        """Whether what is at `path` was made, as far as can be told, while the job lived."""
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return self.begun - 1.0 <= status.st_mtime and status.st_ctime <= self.ended


def scene(root: str, wanted: str | None) -> Scene:
    """Raises Refusal where there is no such job."""
    at = folder.folder_of(root, wanted)
    job = folder.look(at)
    everything = processes.table()
    claims = processes.claims(job, everything) if job["elsewhere"] is None else {}
    mine = frozenset(pid for pid in claims if processes.owner_of(pid) == os.getuid())
    begun, ended = _span(job, bool(mine))
    others = [name for name in folder.ids(root) if name != job["id"]]
    spans = [_span(folder.look(os.path.join(folder.jobs_folder(root), name)), False) for name in others]
    alone = not any(start < ended and begun < stop for start, stop in spans)
    running = job["state"] in ("running", "starting")
    return Scene(root, job, everything, claims, mine, running, begun, ended, alone)


def _span(job: dict[str, Any], lives: bool) -> tuple[float, float]:
    begun = float(job.get("started") or job.get("ordered") or 0.0)
    if lives or job["state"] in ("running", "starting"):
        return begun, time.time() + SLACK
    if job["end"] is not None:
        return begun, float(job["end"].get("ended", begun)) + SLACK
    try:
        return begun, os.stat(os.path.join(job["folder"], "times")).st_mtime + SLACK
    except OSError:
        return begun, begun + SLACK
