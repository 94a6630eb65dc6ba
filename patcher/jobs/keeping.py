"""Keep the configuration that worked, on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patcher.jobs.model import Job, Verdict
    from patcher.remote.connection import Connection


def save_working(
    connection: Connection, job: Job, of_tree: Mapping[str, Any] | None = None, verdict: Verdict | None = None
) -> str:
    """Keep the script, git_ignore.py and the facts of a job that ended well; the folder's path on the host.

    `of_tree` is what is known of the tree that it ran in. Raises RefusedError where it cannot be written.
    """
    facts: dict[str, Any] = {"profile": job.profile, "seconds": round(job.seconds, 1), **(of_tree or {})}
    if verdict is not None:
        facts |= {"phases": verdict.as_json()["phases"], "steps": verdict.step}
    return str(connection.channel.ask("job_keep", id=job.id, facts=facts)["path"])
