"""The result of an apply, a revert, a dry run or an adopt, as a value; `patcher.report.apply_result` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.plan.outcome import Plan
from patcher.session.pre_images import PreImages

if TYPE_CHECKING:
    from patcher.check.untried import Untried


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What an apply or revert came to. `written` is empty on a dry run, on failure, and where nothing had to change."""

    plan: Plan
    before: Mapping[str, str]
    """The text of each file that changes, as it was; "" of one that was not there."""
    would_change: tuple[str, ...]
    written: tuple[str, ...] = ()
    seconds: float = 0.0
    commits: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    """The records that were, or would be, put in or taken out."""
    kept: tuple[str, ...] = ()
    """Where changed files went that a forced revert replaced, or that lose a hand's words behind a marker."""
    taken_over: tuple[str, ...] = ()
    """Patched files that people changed since, whose changes stay."""
    pre_images: PreImages = field(default_factory=PreImages)
    """Remarks about the ledger and the pre-images, as they were before."""
    settings: tuple[str, ...] = ()
    """uky-patch.toml before and after, where records are left out from now on: `apply --skip ID --remember`."""
    aside: str = ""
    """Where the pre-images of another release went."""
    not_in_ledger: tuple[str, ...] = ()
    """Of a revert of all records: those that stand in the files and not in the ledger, so that they are still there."""
    untried: Untried | None = None
    """What `check` finds where records have not been tried."""

    @property
    def failed(self) -> bool:
        return bool(self.plan.failed)
