"""Start, list, look at and stop jobs of a host, and keep the configuration of one that worked.

Each function is one request to the agent, on a connection with the tree open. A job's name is its id, or a beginning or
an end of it that fits one job only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from patcher.jobs.agent.folder import NOT_OVER
from patcher.jobs.agent.stopping import GRACE
from patcher.jobs.job import Job, State, Usage, job_of
from patcher.secrets.redacting import Redactor

if TYPE_CHECKING:
    from patcher.jobs.job import Verdict
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host, Profile
    from patcher.remote.survey import Survey


def script_of(profile: Profile) -> str:
    """The run script that is rendered for a profile, below the tree's root."""
    return f"run_{profile.replace('-', '_')}.sh"


def require_startable(
    connection: Connection,
    host: Host,
    survey: Survey | None,
    *,
    script: str,
    text: str,
    share: bool = False,
    force: bool = False,
) -> None:
    """Raise RefusedError, as `start` does, where a job of the script could not be started now. `text`: what the script
    will be where it is not there yet."""
    args = {**_start_args(host, survey), "share": share, "force": force, "script": script, "text": text}
    connection.channel.ask("job_check", **args)


def start(
    connection: Connection,
    host: Host,
    survey: Survey | None,
    *,
    profile: str,
    script: str,
    share: bool = False,
    force: bool = False,
    arguments: tuple[str, ...] = (),
    steps: int | None = None,
) -> Job:
    """Start `script`, a path below the tree's root, as a job that outlives the connection, which must hold the lock.

    `profile` is noted with the job; `arguments` are added to the script's own; `steps` is how many training steps it is
    asked to make, where that is known. `share` allows it beside other jobs and processes, `force` without a GPU.

    Raises:
        RefusedError: of kind `busy`: a job of this tree runs, or somebody's process is on a GPU, and not `share`;
            `no-gpu`: the script trains, no GPU is visible, and not `force`; `script`: it is not in the tree;
            `slurm`: Slurm does not take it; `unwritable`: as it says.
        CutError: the connection ended; the job may have been started.
    """
    interpreter = survey.interpreter if survey is not None else None
    versions = {name: one.version for name, one in interpreter.packages.items()} if interpreter is not None else {}
    answer = connection.channel.ask(
        "job_start",
        body=json.dumps(dict(host.secrets)).encode() if host.secrets else b"",
        profile=profile,
        script=script,
        arguments=list(arguments),
        share=share,
        force=force,
        steps=steps,
        facts={"versions": versions} if versions else {},
        **_start_args(host, survey),
    )
    return job_of(answer.values)


def _start_args(host: Host, survey: Survey | None) -> dict[str, Any]:
    """Where and with what a job of this host runs."""
    interpreter = survey.interpreter if survey is not None else None
    return {
        "env": dict(host.env),
        "python": interpreter.python if interpreter is not None else None,
        "here": host.here,
        "host": host.name,
        "slurm": None if host.slurm is None else list(host.slurm.options),
        **host.setup_args,
    }


def all_jobs(connection: Connection) -> tuple[Job, ...]:
    """The jobs of the tree that is open on this connection, oldest first."""
    return tuple(job_of(state) for state in connection.channel.ask("job_list")["jobs"])


def running(connection: Connection) -> Job | None:
    """The job of the tree that has not ended; the newest where there are several."""
    return next((job for job in reversed(all_jobs(connection)) if not job.over), None)


class Tail(NamedTuple):
    """The last lines of a job's log."""

    text: str
    """Without secrets."""
    job: Job
    offset: int
    """Of the log, behind them."""
    cut: bool
    """Whether the first ones are missing, because the lines are too long."""


def tail(connection: Connection, name: str | None, lines: int, *, whole: bool = False) -> Tail:
    """The last lines of a job's log. Raises RefusedError.

    With `whole` a last line without its end is left to whoever reads on: half a secret is not recognised as one.
    """
    pieces: list[bytes] = []
    answer = connection.channel.ask("job_tail", on_event=lambda _, piece: pieces.append(piece), id=name, lines=lines)
    body, offset = b"".join(pieces), answer["offset"]
    if whole and not body.endswith(b"\n"):
        rest = len(body) - body.rfind(b"\n") - 1
        body, offset = body[: len(body) - rest], offset - rest
    text = Redactor(connection.host.secrets.values()).text(body.decode("utf-8", "replace"))
    return Tail(text, job_of(answer.values), offset, answer["cut"])


def look(connection: Connection, name: str | None = None) -> tuple[Job, Usage]:
    """A job, the newest where none is named, and what it uses now. Raises RefusedError where there is none."""
    state = connection.channel.ask("job_look", id=name).values
    return job_of(state), Usage(state["processes"], state["gpus"])


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop came to."""

    job: Job
    was: State
    """The job's state before."""
    processes: Sequence[Mapping[str, Any]]
    """Those that were stopped, each with `pid`, `name`, and `how`: TERM or KILL."""
    left: Sequence[Mapping[str, Any]]
    """Those that could not be stopped, each with `pid` and `name`."""

    @property
    def had_ended(self) -> bool:
        """Whether the job was over before."""
        return self.was not in NOT_OVER


def stop(
    connection: Connection,
    name: str | None = None,
    *,
    grace: float = GRACE,
    on_list: Callable[[Sequence[Mapping[str, Any]]], object] = lambda _: None,
) -> Stopped:
    """Stop the job `name`, the newest where none is named; of a job that has ended, the processes that are left of it.

    `on_list` receives the processes before they are stopped. They have `grace` seconds to end by themselves.

    Raises RefusedError where there is no such job, where it runs on another machine, or where Slurm does not cancel it.
    """

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        if "stopping" in event:
            on_list(event["stopping"])

    answer = connection.channel.ask("job_stop", on_event=on_event, id=name, grace=grace).values
    return Stopped(job_of(answer), answer["was"], answer["stopped"], answer["left"])


def save_working(connection: Connection, job: Job, ran: Mapping[str, Any], verdict: Verdict | None = None) -> str:
    """Keep the script, git_ignore.py and facts of a job that ended well. Returns the path of their folder on the host.

    `ran` is what the caller knows of the tree that the job ran: its commit, versions and records.

    Raises RefusedError where it cannot be written.
    """
    facts: dict[str, Any] = {"profile": job.profile, "seconds": round(job.seconds, 1)}
    if verdict is not None:
        facts |= {"phases": verdict.as_json()["phases"], "steps": verdict.step}
    facts |= ran
    return str(connection.channel.ask("job_keep", id=job.id, facts=facts)["path"])
