"""The debug job: started detached, followed until it ends, and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patcher import jobs
from patcher.i18n import phrase
from patcher.migrate.walk import Outcome, Walk, found

if TYPE_CHECKING:
    from patcher.migrate.model import Cargo
    from patcher.remote.connection import Connection


def run(walk: Walk) -> Outcome:
    """Start the job, or go on following the one that an interrupted run had started."""
    walk.received()
    there = jobs.all_jobs(walk.connection)
    job = _begun(walk, there)
    if job is None:
        walk.jobs_before = frozenset(one.id for one in there)
        script = walk.host.script or jobs.script_of(walk.host.profile)
        job = jobs.start(
            walk.connection,
            walk.host,
            found(walk.survey),
            profile=walk.host.profile,
            script=script,
            share=walk.order.share,
        )
    walk.jobs_before = None
    walk.job = {"id": job.id, "verdict": "running"}
    kept: list[str] = []

    def keep(connection: Connection, verdict: jobs.Verdict) -> None:
        if verdict.kind == "ok":
            kept[:] = [jobs.save_working(connection, verdict.job, _what_ran(walk.cargo), verdict)]

    verdict = jobs.follow(
        walk.reconnect,
        walk.connection,
        job,
        on_milestone=walk.listeners.milestone,
        on_time=walk.listeners.time,
        on_trouble=walk.listeners.trouble,
        on_end=keep,
    )
    walk.job = verdict.as_json()
    if verdict.kind == "ok":
        notes = tuple(phrase("what worked is kept in {folder}", folder=folder) for folder in kept)
        return Outcome(verdict.detail, notes=notes)
    if verdict.kind == "running":
        back = f"uky-patch job attach {walk.host.words}"
        return Outcome(verdict.detail, "warn", back)
    fix = f"uky-patch job logs {walk.host.words}"
    return Outcome(verdict.detail, "fail", fix, verdict.lines)


def _what_ran(cargo: Cargo | None) -> Mapping[str, Any]:
    """What is kept of the tree beside the configuration that worked: commit, versions, records with their files."""
    if cargo is None:
        return {}
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


def _begun(walk: Walk, there: Sequence[jobs.Job]) -> jobs.Job | None:
    """The job that this run has begun to follow; else one that runs, or one of which a cut line did not tell."""
    known = [job for job in there if job.id == walk.job.get("id")]
    if known:
        return known[0]
    ours = [job for job in there if walk.jobs_before is not None and job.id not in walk.jobs_before]
    return next((job for job in reversed(there) if not job.over), None) or next(reversed(ours), None)
