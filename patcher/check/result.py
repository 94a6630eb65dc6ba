"""What is asked of a check, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.check.targets import Against

# What judges uses takes as long to import as a kept result takes to be read back.
if TYPE_CHECKING:
    from patcher.analysis.findings import Finding, Report
    from patcher.check.drafts.drafting import Drafted
    from patcher.check.repairs import Repaired
    from patcher.i18n import Phrase, Phrases
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check. `verl` is a release to fetch; "" means the session's tree."""

    against: tuple[Against, ...]
    """Empty: the vLLM that is installed or assumed."""
    verl: str = ""
    baseline: tuple[Against, ...] = ()
    """Releases that the tree runs on today. Findings that they show as well are not due to the upgrade."""
    since: bool = True
    scripts: tuple[str, ...] = ()
    """Globs of run scripts, settings and launchers, below the tree's root."""
    drafts: Path | None = None
    """The folder for drafts of records; None: none are made."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of the tree that is no Python; `line` is 0 where none is known."""

    file: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Accepted:
    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check."""

    report: Report
    after: Report
    """Once the records are applied."""
    session: Session
    """Of the tree that was checked."""
    repaired: Repaired
    """What the records do about it."""
    in_baseline: tuple[Finding, ...] = ()
    """Findings that the requested baseline shows too. They are not in the report."""
    accepted: tuple[Accepted, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    notes: tuple[Phrase | Phrases, ...] = ()
    drafted: Drafted | None = None

    @property
    def clean(self) -> bool:
        """Every file was read, and nothing is left but what is guarded or accepted."""
        return not self.unreadable and not self.report.of("break", "optional", "inert")
