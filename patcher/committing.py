"""Git around an apply: whose changes are in the way, and one commit a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.errors import TreeError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from patcher.planning.outcome import Plan
    from patcher.session import Session
    from patcher.survey import Survey


def refuse_foreign_changes(session: Session, found: Survey, paths: AbstractSet[str]) -> None:
    """Raise TreeError where a file that would change has uncommitted changes that are not the ledger's."""
    foreign = session.tree.foreign_changes(paths, found.ledger)
    if foreign:
        raise TreeError(
            f"uncommitted changes in {', '.join(sorted(foreign))}",
            cause="apply would write into files that somebody is working on. Nothing was written.",
            advice="Commit or stash them, or say --allow-dirty.",
        )


def commit_steps(session: Session, plan: Plan, found: Survey, paths: AbstractSet[str]) -> tuple[str, ...]:
    """Commit what was written, one commit for each record that is new."""
    raise NotImplementedError
