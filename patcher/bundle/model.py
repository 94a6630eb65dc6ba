"""What a bundle is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.i18n import Phrase, Phrases

if TYPE_CHECKING:
    from patcher.bundle.sealing import Sealed
    from patcher.diagnose.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class Section:
    """A file of the archive before it is made harmless. `content` is its text, or a file that is too large to hold."""

    name: str
    """Below the archive's top folder."""
    holds: Phrase
    content: str | Path


@dataclass(frozen=True, slots=True)
class Missing:
    """What a report should have and this one has not, and how to add it."""

    point: str
    what: Phrase | Phrases | str
    how: Phrase | str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for. `log` and `job` exclude each other: a log here, or the log of a job."""

    log: str | None = None
    job: str | None = None
    script: Path | None = None
    command: str | None = None
    tried: tuple[str, ...] = ()
    whole_log: bool = False
    names: bool = False
    """Whether the names of people and machines stay."""


@dataclass(frozen=True, slots=True)
class Found:
    """All that was collected, as it is: nothing of it may leave before it is sealed."""

    sections: tuple[Section, ...]
    facts: Mapping[str, Any]
    """For the report: gpus, driver, cuda, versions, command, environments, script, log, tree, …"""
    diagnosis: Diagnosis | None
    missing: tuple[Missing, ...]
    secrets: frozenset[str] = frozenset()
    """Values that are known to be secret."""
    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    hidden: int = 0
    """Secrets that were taken out on the host already."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What an archive holds, or would: nothing else is written."""

    top: str
    """The folder in the archive."""
    files: Sequence[Sealed]
    diagnosis: Diagnosis | None
    missing: tuple[Missing, ...]
    shown: int
    """Variables that are in it, by name; so for `left`, of which only the number is known."""
    left: int
    replaced: Counter[str] = field(default_factory=Counter)
    """How often what was replaced, over all files: secrets, users, hosts, addresses, mails."""
