"""Stop a job: all of its processes, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher.jobs.model import Job, State, job_of

if TYPE_CHECKING:
    from patcher.remote.connection import Connection

GRACE = 20.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop came to. Processes have `pid` and `name`; those that were stopped, `how`: TERM or KILL."""

    job: Job
    was: State
    """What the job was before."""
    processes: Sequence[Mapping[str, Any]]
    left: Sequence[Mapping[str, Any]]
    """Could not be stopped."""


def stop(
    connection: Connection,
    name: str | None = None,
    *,
    grace: float = GRACE,
    on_list: Callable[[Sequence[Mapping[str, Any]]], object] = lambda _: None,
) -> Stopped:
    """Stop the job `name`, the newest where none is named; of one that has ended, what it left behind.

    `on_list` is told the processes before they are stopped. They have `grace` seconds to end by themselves.

    Raises RefusedError where there is no such job, or it runs on another machine.
    """

    def hear(event: Mapping[str, Any], _: bytes) -> None:
        if "stopping" in event:
            on_list(event["stopping"])

    told = connection.channel.ask("job_stop", on_event=hear, id=name, grace=grace).values
    return Stopped(job_of(told), told["was"], told["stopped"], told["left"])
