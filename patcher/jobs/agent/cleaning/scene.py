"""All that is looked at to tell what is the job's."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from patcher.jobs.agent import folder, processes
from patcher.jobs.agent.cleaning.holders import holders
from patcher.jobs.agent.processes import Table
from patcher.messages import Message


class Scene(NamedTuple):
    """`claims`: why each process that lives is the job's, of whatever user; `mine`: those of this user."""

    root: str
    job: dict[str, Any]
    everything: Table
    claims: dict[int, Message]
    mine: frozenset[int]
    held: dict[Any, list[int]]
    """See `holders`."""

    @property
    def running(self) -> bool:
        """Whether the job itself is at work."""
        return self.job["state"] in ("running", "starting")


def scene(root: str, wanted: str | None) -> Scene:
    """Raises Refusal where there is no such job."""
    job = folder.look(folder.folder_of(root, wanted))
    everything = processes.table()
    claims = processes.claims(job, everything) if job["elsewhere"] is None else {}
    mine = frozenset(pid for pid in claims if processes.owner_of(pid) == os.getuid())
    return Scene(root, job, everything, claims, mine, holders(everything))
