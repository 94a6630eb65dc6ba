"""The debug job: started detached, followed until it ends, and judged."""

from __future__ import annotations

from collections.abc import Sequence

from patcher import jobs
from patcher.language import phrase
from patcher.migration.walk import Outcome, Walk, found


def run(walk: Walk) -> Outcome:
    """Start the job, or go on following the one that an interrupted run had started."""
    walk.received()
    there = jobs.all_jobs(walk.connection)
    job = _to_follow(walk, there)
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
    verdict = jobs.follow(
        walk.reconnect,
        walk.connection,
        job,
        on_milestone=walk.listeners.milestone,
        on_time=walk.listeners.time,
    )
    walk.job = verdict.as_json()
    if verdict.kind == "ok":
        kept = jobs.save_working(walk.connection, job, walk.cargo, verdict)
        return Outcome(verdict.detail, notes=(phrase("what worked is kept in {folder}", folder=kept),))
    if verdict.kind == "running":
        back = f"uky-patch job attach {walk.host.name}"
        return Outcome(verdict.detail, "warn", back)
    fix = f"uky-patch job logs {walk.host.name}"
    return Outcome(verdict.detail, "fail", fix, verdict.lines)


def _to_follow(walk: Walk, there: Sequence[jobs.Job]) -> jobs.Job | None:
    """The job that runs; else the one that was started on a connection that was cut before it was told of."""
    ours = [job for job in there if walk.jobs_before is not None and job.id not in walk.jobs_before]
    return next((job for job in reversed(there) if not job.over), None) or next(reversed(ours), None)
