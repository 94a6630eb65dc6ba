"""What is asked of a check, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.check.targets import Against

# What judges uses takes as long to import as a kept result takes to be read back.
if TYPE_CHECKING:
    from patcher.analysis.findings import Finding, Report
    from patcher.check.drafts.drafting import Drafted
    from patcher.i18n import Phrase, Phrases
    from patcher.plan.outcome import Plan
    from patcher.session.session import Session


Texts: TypeAlias = Mapping[str, str]
Step: TypeAlias = tuple[str, Texts]
"""A record's id, and the texts of the files that it changes, right after it."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """The report with `repaired_by`, what is left once all steps are made, and what single records bring in."""

    before: Report
    after: Report
    introduced: tuple[tuple[str, Finding], ...] = ()


@dataclass(frozen=True, slots=True)
class Repaired:
    """What the records repair of a report."""

    repairs: Repairs
    plan: Plan
    off_by_default: frozenset[str] = frozenset()
    """Records named in `repaired_by` that apply makes only when asked for by id."""
    base: Texts = field(default_factory=dict)
    """The texts of the records' files before all of `steps`."""
    steps: tuple[Step, ...] = ()
    """The edits in order, with those of records that are off by default and would repair something."""


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
    empty: Phrase | None = None
    """Why nothing was checked: the tree holds no code, so that no finding means nothing. It is among the notes too."""

    @property
    def unread_records(self) -> tuple[str, ...]:
        """The ids of records that cannot be applied because a file of theirs is no Python."""
        return unread_records(self.repaired.plan, self.unreadable)

    @property
    def clean(self) -> bool:
        """There is code, every file of it was read, and nothing is left but what is guarded or accepted."""
        return self.empty is None and not self.unreadable and not self.report.of("break", "optional", "inert")


def unread_records(plan: Plan, unreadable: Collection[Unreadable]) -> tuple[str, ...]:
    """The ids of the plan's records that cannot be applied because one of these files is no Python."""
    places = {one.file for one in unreadable}
    return tuple(one.id for one in plan.failed if one.kind == "unparseable" and places & set(one.files))
