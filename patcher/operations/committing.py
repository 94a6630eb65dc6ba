"""Git around an apply: whose changes are in the way, and one commit a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.errors import TreeError
from patcher.language import phrase
from patcher.tree.checkout import Checkout, checkout
from patcher.tree.series import Step, commit_series

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from patcher.operations.survey import Survey
    from patcher.planning.outcome import Plan
    from patcher.session import Session


def refuse_foreign_changes(session: Session, found: Survey, paths: AbstractSet[str]) -> None:
    """Raise TreeError where a file that would change has uncommitted changes that are not the ledger's."""
    place = checkout(session.tree.root)
    if place is None:
        return
    foreign = place.foreign_changes(sorted(paths), found.ledger, session.tree.read)
    if foreign:
        raise TreeError(
            phrase("uncommitted changes in {files}", files=", ".join(foreign)),
            cause=phrase("apply would write into files that somebody is working on; nothing was written"),
            advice=phrase("Commit or stash them, or say --allow-dirty."),
        )


def require_checkout(session: Session) -> Checkout:
    """The git checkout to commit to. Raises TreeError where the tree is in none."""
    place = checkout(session.tree.root)
    if place is None:
        raise TreeError(
            phrase("{root} is no git checkout, so nothing can be committed", root=session.tree.root),
            cause=phrase("nothing was written"),
            advice=phrase("Leave --commit out here."),
        )
    return place


def commit_steps(session: Session, plan: Plan, found: Survey, paths: AbstractSet[str]) -> tuple[str, ...]:
    """Commit what was written, one commit for each record that is new."""
    place = require_checkout(session)
    return commit_series(place, tuple(_steps(session, plan, found, paths)))


def _steps(session: Session, plan: Plan, found: Survey, paths: AbstractSet[str]) -> Iterator[Step]:
    """A file in which records were already applied changes with its last step, for they stand in it throughout."""
    last = {path: name for name, texts in plan.steps for path in texts}
    records = {record.id: record for record in session.records}
    for name, texts in plan.steps:
        files = {
            path: found.encode(path, text)
            for path, text in texts.items()
            if path in paths and (path not in found.ledger.files or last[path] == name)
        }
        record = records.get(name)
        if files and record is not None:
            yield Step(f"{record.title}\n\n{record.reason}\n\nApplied by uky-patch as {name}.", files)
    withdrawn = {path: found.encode(path, plan.files[path].text) for path in paths if path not in last}
    if withdrawn:
        yield Step("Take out records that are no longer needed", withdrawn)
