"""Free space in a tree, here or on a host: remove kept copies and folders of ended jobs, all but the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.i18n.codec import decode
from patcher.remote.channel import understood
from patcher.remote.connection import Connection

StoredKind: TypeAlias = Literal["kept", "job"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A kept copy, or the folder of a job that has ended."""

    kind: StoredKind
    name: str
    size: int
    """Bytes."""
    time: float
    """When it was changed last, in seconds since 1970."""
    state: str = ""
    """Of a job: ended, stopped or lost."""

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "size": self.size, "time": self.time, "state": self.state}


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, and what could not be removed, each with the reason."""

    removed: tuple[Stored, ...] = ()
    left: tuple[tuple[Stored, Phrase | Phrases | str], ...] = field(default=())


def superfluous(connection: Connection, keep: int, before: float) -> tuple[Stored, ...]:
    """What can be removed, newest first: of each kind all but the newest `keep`, and only what is older than `before`.

    `before` is in seconds since 1970. The tree's folder must have been opened (`open_tree_folder`).
    """
    answer = connection.channel.ask("list_stored")
    stored = understood(lambda: [Stored(**one) for one in answer["items"]])
    kinds: tuple[StoredKind, ...] = ("kept", "job")
    old = [one for kind in kinds for one in [found for found in stored if found.kind == kind][keep:]]
    return tuple(one for one in old if one.time < before)


def prune(connection: Connection, things: Sequence[Stored]) -> Pruned:
    """Remove these things; those that are in use by now are left out. The tree's folder must be locked."""
    named = {(one.kind, one.name): one for one in things}
    answer = connection.channel.ask("remove_stored", names=[list(name) for name in named])
    removed = tuple(named[kind, name] for kind, name in answer["done"])
    return Pruned(removed, tuple((named[one["kind"], one["name"]], decode(one["why"])) for one in answer["left"]))
