"""Keep the configuration that worked, on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patcher.jobs.model import Job, Verdict
    from patcher.migrate.model import Cargo
    from patcher.remote.connection import Connection


def save_working(connection: Connection, job: Job, cargo: Cargo | None = None, verdict: Verdict | None = None) -> str:
    """Keep the script, git_ignore.py and the facts of a job that ended well; the folder's path on the host.

    Raises RefusedError where it cannot be written.
    """
    facts: dict[str, Any] = {"profile": job.profile, "seconds": round(job.seconds, 1)}
    if verdict is not None:
        facts |= {"phases": verdict.as_json()["phases"], "steps": verdict.step}
    if cargo is not None:
        facts |= _of_cargo(cargo)
    return str(connection.channel.ask("job_keep", id=job.id, facts=facts)["path"])


def _of_cargo(cargo: Cargo) -> Mapping[str, Any]:
    plan = cargo.round.plan
    return {
        "commit": cargo.listing.commit,
        "versions": {name: item.version for name, item in cargo.environment.packages.items()},
        "records": {
            outcome.id: {
                "outcome": outcome.kind,
                "files": {path: cargo.items[path].sha256 for path in outcome.files if path in cargo.items},
            }
            for outcome in plan.outcomes
            if outcome.kind in ("applied", "pending", "adopted")
        },
    }
