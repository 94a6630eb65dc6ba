"""Check: every use that a tree makes of some packages, held against releases of them.

What is asked and what comes of it; `computing` finds it, unless `result_cache` has it from an earlier call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.check.result_cache import ResultCache
from patcher.check.targets import Against
from patcher.terminal.progress import progress

# What judges uses takes as long to import as a result takes to be read back.
if TYPE_CHECKING:
    from patcher.analysis.findings import Finding, Report
    from patcher.check.drafts.drafting import Drafted
    from patcher.check.repairs import Repaired
    from patcher.i18n import Phrase, Phrases
    from patcher.session.session import Session


_KEPT = ("report", "after", "repaired", "in_baseline", "accepted", "unreadable", "notes")
"""What of a Check the result cache keeps."""


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


def check(session: Session, request: CheckRequest) -> Check:
    """Judge all uses of a tree, or tell what came of it when nothing has changed since.

    Raises:
        ReleaseError: a release cannot be fetched.
        UsageError: what to check against cannot be read, or is not installed.
    """
    session = session_on(session, request.verl)
    cache = ResultCache(session, request)
    kept = cache.read()
    if kept is not None:
        return Check(session=session, **kept)
    from patcher.check.computing import compute

    done, lasting = compute(session, request)
    if lasting:
        cache.keep({name: getattr(done, name) for name in _KEPT})
    return done


def session_on(session: Session, verl: str) -> Session:
    """The session itself, or one on the tree of a released verl. Raises ReleaseError."""
    if not verl:
        return session
    from patcher.packages.releases import wheel

    try:
        folder = wheel("verl", verl, progress=progress)
    finally:
        progress("")
    # The tree is that release of verl, whatever was assumed before.
    assume = {name: version for name, version in session.assume.items() if name != "verl"}
    return replace(session, root_option=folder, assume=assume)
