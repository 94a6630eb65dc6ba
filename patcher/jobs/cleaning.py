"""Clean up after a job, here or on a host: ask the machine's agent to list what it left, then to take that away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patcher.i18n import Phrase, Phrases
from patcher.i18n.codec import decode
from patcher.jobs.agent.stopping import GRACE
from patcher.secrets.redacting import Redactor

if TYPE_CHECKING:
    from patcher.remote.connection import Connection


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that the job has left, or that stands in its way and is not touched. Sizes in bytes, age in seconds."""

    kind: str
    """process, port, shm, socket, session, cache, lock."""
    key: str
    """Tells it from another that takes its place later, by a process's start, or a file's device and inode."""
    what: str
    """A process's number, or a path."""
    why: Phrase | Phrases | str
    """Why it counts as the job's, or why it is not touched."""
    owner: str = ""
    command: str = ""
    age: float | None = None
    memory: int = 0
    gpu: int = 0
    """Bytes that a process holds on GPUs."""
    size: int = 0
    ports: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What `uky-patch clean --json` prints of it."""
        fields: dict[str, Any] = {"kind": self.kind, "what": self.what, "why": str(self.why), "owner": self.owner}
        if self.kind == "process":
            fields |= {"command": self.command, "age": self.age, "memory": self.memory, "gpu": self.gpu}
        else:
            fields["size"] = self.size
        return fields | {"ports": list(self.ports)}


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What the job with the id `job` has left; `alone` is what is not touched. `state` is the job's, as in `Job`."""

    job: str
    state: str
    things: tuple[Thing, ...]
    alone: tuple[Thing, ...]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of the things, by key: those `done`, with the signal that ended a process, and those `left`, with
    the reason.
    """

    done: Mapping[str, str | None] = field(default_factory=dict)
    left: Mapping[str, Phrase | Phrases | str] = field(default_factory=dict)


def list_leftovers(connection: Connection, job: str | None, *, caches: bool, running: bool) -> Leftovers:
    """What the job with the id `job` has left, the newest job where it is None. Nothing is changed.

    With `caches` also compilers' caches in the tree; with `running` also what a job holds that is at work.

    Raises RefusedError where there is no such job, or where it runs on another machine.
    """
    answer = connection.channel.ask("clean_look", **_args(connection, job, caches, running))
    found = answer["job"]
    return Leftovers(found["id"], found["state"], _things(answer["items"]), _things(answer["alone"]))


def take_away(
    connection: Connection,
    found: Leftovers,
    *,
    caches: bool,
    running: bool,
    grace: float = GRACE,
    on_list: Callable[[Sequence[Mapping[str, Any]]], object] = lambda _: None,
) -> Cleaned:
    """Take away what `list_leftovers` has found, as far as each thing is still the same; the flags as they were there.

    `on_list` receives the processes that are to end. They have `grace` seconds to end by themselves.
    """

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        if "stopping" in event:
            on_list(event["stopping"])

    keys = [thing.key for thing in found.things]
    args = _args(connection, found.job, caches, running)
    answer = connection.channel.ask("clean_do", on_event=on_event, keys=keys, grace=grace, **args)
    done = {one["key"]: one["how"] for one in answer["done"]}
    return Cleaned(done, {one["key"]: decode(one["why"]) for one in answer["left"]})


def _args(connection: Connection, job: str | None, caches: bool, running: bool) -> dict[str, Any]:
    return {"id": job, "caches": caches, "running": running, "env": dict(connection.host.env)}


def _things(items: Sequence[Mapping[str, Any]]) -> tuple[Thing, ...]:
    redactor = Redactor()
    return tuple(
        Thing(
            one["kind"],
            one["key"],
            one["what"],
            decode(one["why"]),
            owner=one.get("owner", ""),
            command=redactor.text(one.get("command") or one.get("name", "")),
            age=one.get("age"),
            memory=one.get("memory", 0),
            gpu=one.get("gpu", 0),
            size=one.get("size", 0),
            ports=tuple(one.get("ports", ())),
        )
        for one in items
    )
