"""Diagnose the log of a host's job: fetched, judged for that host's versions, and held against how the job ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.diagnose.diagnose import add_comparison, judge_logs, silence_limit
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.evidence import LogOfRun
from patcher.diagnose.log_files import RotatedLog
from patcher.diagnose.scanner import Scanner
from patcher.i18n import Phrase, phrase
from patcher.jobs.job import job_of
from patcher.jobs.link import linked
from patcher.jobs.logs import job_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patcher.diagnose.diagnosis import Verdict
    from patcher.diagnose.evidence import Evidence
    from patcher.jobs.job import Job
    from patcher.remote.host import Host
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class OfJob:
    """A job, and what its log comes to."""

    job: Job
    diagnosis: Diagnosis


def diagnose_job(session: Session, host: Host, name: str | None, against: str | None = None) -> OfJob:
    """The job `name` of a host, the newest where none is named, held against a good run's log if one is named.

    Raises HostError where the host cannot be reached, RefusedError where it has no such job, UsageError where no tree
    is here whose jobs could be meant.
    """
    with linked(host, session.tree.root) as link:
        connection, _ = link.open()
        told = connection.channel.ask("job_look", id=name).values
        job = job_of(told)
        scanner = Scanner(session.symptoms)
        with job_log(connection, told) as log:
            with log.path.open("rb") as stream:
                evidence = scanner.scan([(job.log if host.here else f"{host.name}:{job.log}", stream)])
            quiet = job.seconds - _wrote(told, log.path)
            difference = add_comparison(Diagnosis("running", None), [RotatedLog((str(log.path),))], against)
    versions: Mapping[str, str] = told.get("facts", {}).get("versions", {})
    found = judge_logs(
        session,
        [LogOfRun(evidence, 0.0)],
        installed=None if host.here else versions,
        ended=_failed(job, evidence) or None,
        silent=not job.over and quiet > silence_limit(evidence),
    )
    return OfJob(
        job,
        replace(
            found,
            verdict=_verdict(job, found),
            notes=(_told(job), *scanner.notes),
            missing=difference.missing,
            added=difference.added,
            blank=False,
        ),
    )


def _wrote(told: Mapping[str, object], log: Path) -> float:
    """The job's age when its log last grew."""
    started = told.get("started")
    return max(0.0, log.stat().st_mtime - started) if isinstance(started, int | float) else 0.0


def _failed(job: Job, evidence: Evidence) -> bool:
    if not job.over:
        return False
    return job.code != 0 if job.code is not None else evidence.finished is None


def _verdict(job: Job, found: Diagnosis) -> Verdict:
    """What the log says, unless its host knows better whether the job runs and how it ended."""
    if not job.over:
        return found.verdict if found.verdict in ("stalled", "failed") else "running"
    if job.code == 0 and job.state == "ended":
        return "ok" if found.verdict in ("running", "stalled") else found.verdict
    return "ok" if job.code is None and found.verdict == "ok" else "failed"


def _told(job: Job) -> Phrase:
    """How the job stands, as its host tells."""
    seconds = f"{job.seconds:.0f}"
    if not job.over:
        return phrase("job {id} has run for {seconds} s", id=job.id, seconds=seconds)
    if job.state == "stopped":
        return phrase("job {id} was stopped after {seconds} s", id=job.id, seconds=seconds)
    if job.code is None:
        return phrase("job {id} is gone, and nobody noted its exit code", id=job.id)
    return phrase("job {id} ended with exit code {code} after {seconds} s", id=job.id, code=job.code, seconds=seconds)
