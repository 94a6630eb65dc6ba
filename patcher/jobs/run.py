"""What `uky-patch run` does: start a profile's script as a job on a host, follow it, and keep what worked.

The steps:

1. `launch` opens the tree on the host under its lock, renders the run scripts for the versions there, and starts the
   wanted one (`control.start`). The agent's `starting` makes the job's folder and starts `runner`, which outlives the
   connection.
2. `follow_and_keep` reads the log from the host (`follow_log.LogReader`) and tells milestones, until the job has ended.
3. `job.verdict_of` makes the verdict, from how the job ended and from its milestones. The configuration of a job that
   worked is kept on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patcher import jobs
from patcher.profiles.rendered_file import write_files
from patcher.profiles.rendering import render_all
from patcher.remote.environment import environment_of
from patcher.remote.survey import survey_host

if TYPE_CHECKING:
    from patcher.jobs import Job, Verdict
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host, Profile
    from patcher.remote.link import HostLink
    from patcher.remote.survey import Survey
    from patcher.session.session import Session

ROLLOUT_ONLY = ("trainer.val_before_train=True", "trainer.val_only=True")
"""Arguments for generation and reward on the validation data without training; verl has both from 0.6 on."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of `uky-patch run`."""

    host: Host
    profile: Profile
    overrides: tuple[str, ...] = ()
    only_rollout: bool = False
    share: bool = False
    force: bool = False
    script: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Arguments for the script, behind its own."""
        return (*(ROLLOUT_ONLY if self.only_rollout else ()), *self.overrides)


def launch(session: Session, link: HostLink, wanted: RunRequest) -> Job:
    """Start the wanted script under the tree's lock. Without a script of the fork's own, the profile's is rendered
    before, unless somebody has edited it on the host.

    Raises what `jobs.start` raises; UsageError where the tree is not on the host.
    """
    connection, _ = link.open()
    link.require_tree()
    with link.locked("run"):
        found = survey_host(connection, wanted.host)
        script = wanted.script or wanted.host.script
        if script is None:
            script = jobs.script_of(wanted.profile)
            host = replace(wanted.host, profile=wanted.profile)
            rendered = render_all(host, found, _versions(session, found), session.tree.root)
            text = next(one.text for one in rendered if one.path == script)
            # A job that is refused leaves nothing in the tree.
            jobs.require_startable(
                connection, host, found, script=script, text=text, share=wanted.share, force=wanted.force
            )
            write_files(connection, rendered)
        return jobs.start(
            connection,
            wanted.host,
            found,
            profile=wanted.profile,
            script=script,
            share=wanted.share,
            force=wanted.force,
            arguments=wanted.arguments,
        )


def follow_and_keep(link: HostLink, job: Job, listener: jobs.JobListener, *, keep: bool = True) -> Verdict:
    """Follow a job to its end on the link's connection, and with `keep` keep the configuration of one that worked.

    Raises what `jobs.follow` raises.
    """

    def save(connection: Connection, verdict: Verdict) -> None:
        if verdict.kind == "ok" and keep:
            jobs.save_working(connection, verdict.job, {}, verdict)

    return jobs.follow(link.reconnect, link.connection, job, listener, on_end=save)


def _versions(session: Session, found: Survey) -> dict[str, str]:
    environment = environment_of(found, session.tree.root)
    return {name: item.version for name, item in environment.packages.items()}
