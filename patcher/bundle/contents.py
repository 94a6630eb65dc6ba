"""What a bundle is made of: what the command line asks for, what was learnt of the run, and the archive's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from patcher.i18n import Phrase, Phrases

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis
    from patcher.jobs.job_log import Log
    from patcher.patching.status import RecordsStatus

POINTS = ("hardware", "software", "command", "log", "environment", "script", "tried")
"""The seven points of a bug report, in order."""
BLOCK = 1 << 20
"""Characters that are looked at together; a line is never cut, unless it is longer than this four times over."""


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What the command line asks for. `log` (a path or `-`) and `job` exclude each other."""

    log: str | None = None
    job: str | None = None
    script: Path | None = None
    command: str | None = None
    tried: tuple[str, ...] = ()
    whole_log: bool = False
    keep_names: bool = False
    """Whether the names of people and machines stay."""


@dataclass(frozen=True, slots=True)
class Section:
    """A file of the archive before it is made harmless. `content` is its text, or a file that is too large to hold."""

    name: str
    """Below the archive's top folder."""
    holds: Phrase
    content: str | Path


@dataclass(frozen=True, slots=True)
class Sealed:
    """A file of the archive as it is written. `content` is bytes, or an open file without a name."""

    name: str
    holds: Phrase
    size: int
    content: bytes | IO[bytes]
    replaced: Counter[str]
    """How often what was replaced in it."""

    def pieces(self) -> Iterator[bytes]:
        """Its bytes from the beginning."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        self.content.seek(0)
        while piece := self.content.read(BLOCK):
            yield piece


@dataclass(frozen=True, slots=True)
class Missing:
    """What a report should have and this one lacks, by its point of POINTS, and how to add it."""

    point: str
    what: Phrase | Phrases | str
    how: Phrase | str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """All that was learnt of a run, as it is: nothing of it may leave before it is sealed."""

    sections: tuple[Section, ...]
    facts: Mapping[str, Any]
    """For the report: machine, versions, command, environments, script, excerpt, git, applied, ..."""
    missing: tuple[Missing, ...]
    log: Log | None
    diagnosis: Diagnosis | None
    status: RecordsStatus | None
    """The records on the tree; None where there is no tree, or it cannot be known."""
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

    files: Sequence[Sealed]
    diagnosis: Diagnosis | None
    missing: tuple[Missing, ...]
    shown: int
    """Variables that are in it, by name; so for `left`, of which only the number is known."""
    left: int
    replaced: Counter[str] = field(default_factory=Counter)
    """How often what was replaced, over all files: secrets, users, hosts, addresses, mails."""
