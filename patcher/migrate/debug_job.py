"""The step job of a migration, its last one: the debug job on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patcher import jobs
from patcher.i18n import phrase
from patcher.migrate.order import MigrationOrder
from patcher.migrate.payload import Payload
from patcher.migrate.steps import Listeners, Outcome
from patcher.profiles.rendered_file import Text
from patcher.remote.connection import Connection
from patcher.remote.link import HostLink
from patcher.remote.survey import Survey


class DebugJob:
    """Starts the debug job detached from the connection, follows it until it ends, and judges it.

    After a cut connection `run` is called again. It never starts a second job. It continues with the job that it has
    started, or with one that runs there, or with one that has appeared since it asked for a start: the connection may
    have been cut before the answer arrived.
    """

    def __init__(
        self, link: HostLink, order: MigrationOrder, survey: Survey, payload: Payload | None, listeners: Listeners
    ) -> None:
        self._link = link
        self._order = order
        self._host = order.host
        self._survey = survey
        self._payload = payload
        self._listeners = listeners
        self._jobs_before: frozenset[str] | None = None
        self.state: Mapping[str, Any] = {}
        """`id` and `verdict` ("running") once the job is started; all results when it has ended."""

    def run(self) -> Outcome[None]:
        """Start or find the job, and follow it."""
        job = self._start_or_find()
        self.state = {"id": job.id, "verdict": "running"}
        notes: list[Text] = []

        def keep(connection: Connection, verdict: jobs.Verdict) -> None:
            if verdict.kind == "ok":
                facts = self._payload.facts if self._payload is not None else {}
                folder = jobs.save_working(connection, verdict.job, facts, verdict)
                notes[:] = [phrase("what worked is kept in {folder}", folder=folder)]

        told = self._listeners
        listener = jobs.JobListener(milestone=told.milestone, time=told.time, problem=told.problem)
        verdict = jobs.follow(self._link.reconnect, self._link.connection, job, listener, on_end=keep)
        self.state = verdict.as_json()
        if verdict.kind == "ok":
            return Outcome(None, verdict.detail, notes=tuple(notes))
        if verdict.kind == "running":
            return Outcome(None, verdict.detail, "warn", f"uky-patch job attach {self._host.words}")
        return Outcome(None, verdict.detail, "fail", f"uky-patch job logs {self._host.words}", verdict.lines)

    def _start_or_find(self) -> jobs.Job:
        host, there = self._host, jobs.all_jobs(self._link.connection)
        job = self._begun(there)
        if job is None:
            self._jobs_before = frozenset(one.id for one in there)
            script = host.script or jobs.script_of(host.profile)
            job = jobs.start(
                self._link.connection,
                host,
                self._survey,
                profile=host.profile,
                script=script,
                share=self._order.share,
                force=self._order.force,
            )
        self._jobs_before = None
        return job

    def _begun(self, there: Sequence[jobs.Job]) -> jobs.Job | None:
        """The job to continue with, of those on the host; None if there is none."""
        known = [job for job in there if job.id == self.state.get("id")]
        if known:
            return known[0]
        ours = [job for job in there if self._jobs_before is not None and job.id not in self._jobs_before]
        return next((job for job in reversed(there) if not job.over), None) or next(reversed(ours), None)
