"""All that can be said of a host's jobs at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher.jobs.following import verdict_now
from patcher.jobs.model import Job, Usage, Verdict, job_of
from patcher.jobs.starting import all_jobs

if TYPE_CHECKING:
    from patcher.remote.connection import Connection


@dataclass(frozen=True, slots=True)
class Status:
    """One job with what it uses, the others there, and the configuration that worked last."""

    verdict: Verdict
    usage: Usage
    others: tuple[Job, ...]
    working: Mapping[str, Any] | None


def status_of(connection: Connection, name: str | None) -> Status:
    """The job `name`, the newest where none is named, and the rest. Raises RefusedError where there is none."""
    told = connection.channel.ask("job_look", id=name).values
    job = job_of(told)
    others = tuple(other for other in all_jobs(connection) if other.id != job.id)
    usage = Usage(told["processes"], told["gpus"])
    return Status(verdict_now(connection, job), usage, others, told["working"])
