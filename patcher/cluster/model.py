"""A node of the cluster and what it says of itself, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from patcher.checks import Check
from patcher.i18n import NOTHING, Phrase, Phrases

State = Literal["answered", "died", "late", "failed"]
"""`died`: the node left the cluster; `late`: no answer within the limit; `failed`: its worker or our program did."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which tree a path leads to: a kernel's boot, a device and an inode, and the file system that they are of."""

    boot: str
    device: int
    inode: int
    born: int
    """When the folder's inode last changed, in ns."""
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of a file system; None where it does not say."""

    free: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Round:
    """What an apply came to on a node, or would come to."""

    failed: Mapping[str, Phrase | Phrases | str]
    """Why, by record."""
    would_change: tuple[str, ...]
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a node that answered says. Where it has no usable tree, `error` says why and the tree's part is empty."""

    hostname: str
    root: str | None
    imported: str | None
    """Folder of the verl that a worker imports."""
    python: str
    executable: str
    versions: Mapping[str, str]
    variables: Mapping[str, str]
    """As a worker sees them; only those that may be shown."""
    gpus: tuple[str, ...]
    driver: str
    disks: Mapping[str, Room]
    """`tree`, `tmp` and `shm`."""
    seconds: float
    files: Mapping[str, str] = field(default_factory=dict)
    """Digests of the tree's files."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Outcomes, by record."""
    checks: tuple[Check, ...] = ()
    identity: Identity | None = None
    round: Round | None = None
    error: Phrase | Phrases | str = NOTHING
    fix: Phrase | Phrases | str = NOTHING

    @property
    def failed(self) -> bool:
        """Whether the tree cannot be looked at, or records cannot be applied."""
        return bool(self.error) or (self.round is not None and bool(self.round.failed))

    @property
    def pending(self) -> tuple[str, ...]:
        """Records that are needed and not in."""
        return tuple(sorted(name for name, kind in self.records.items() if kind == "pending"))


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that a node's clock is ahead of this machine's, give or take."""

    ahead: float
    uncertain: float


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the cluster, by the id that Ray gives it."""

    id: str
    label: str
    """As `ray start --node-name` has it; its address where it has none."""
    hostname: str
    address: str
    head: bool
    gpus: int
    """As Ray counts them."""
    added: bool
    """Whether it joined while the others were being asked."""
    state: State
    detail: Phrase | Phrases | str = NOTHING
    facts: Facts | None = None
    clock: Clock | None = None
    name: str = ""
    """What it is called here: as short as tells it from the others."""
