"""Revert: take records out. Of all records, each file is its pre-image (the original) again, byte for byte.

Of some, the others are replayed on the pre-images as they were applied; where one of these builds on a record that is
to go, that is a conflict, and nothing is written.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from patcher.errors import RecordError, UsageError
from patcher.i18n import phrase
from patcher.patching.applying import (
    apply_result,
    changes,
    keep_other_release,
    keep_words,
    next_ledger,
    refuse_unfinished_merge,
)
from patcher.patching.result import ApplyResult
from patcher.patching.status import not_in_ledger
from patcher.plan.planning import plan_revert
from patcher.session.snapshot import Tampering, TreeSnapshot, read_snapshot
from patcher.session.tree_access import lock_timeout, read_consistently, report_lock_owner, report_recovery

if TYPE_CHECKING:
    from patcher.session.session import Session
    from patcher.tree import Ledger
    from patcher.worktree.account import Account


def revert(session: Session, ids: frozenset[str], *, dry_run: bool, tampering: Tampering = "refuse") -> ApplyResult:
    """Take records out: those of `ids`, or all.

    What becomes of files that were changed since: see `read_snapshot`; what a file held that is restored is kept aside.
    Raises UsageError for an id that is not applied here, TreeError where the tree cannot be written.
    """
    started = time.monotonic()
    first, seen = read_consistently(session.tree, lambda reading: _planned(session, reading.account, ids, tampering))
    left = _not_in_ledger(session, seen.ledger) if not ids else ()
    first = replace(first, not_in_ledger=left)
    if not dry_run:
        refuse_unfinished_merge(session, seen, first.would_change)
    if dry_run or first.failed or not (first.plan.outcomes or first.pre_images.stale):
        return replace(first, seconds=time.monotonic() - started)
    with session.tree.transaction("revert", wait=lock_timeout(), on_wait=report_lock_owner) as transaction:
        report_recovery(transaction.recovered)
        done, found = _planned(session, transaction.account, ids, tampering)
        if done.failed:
            return done
        refuse_unfinished_merge(session, found, done.would_change)
        todo = changes(done.plan, found)
        lost = {change.path for change in todo}.intersection(found.changed) if tampering == "restore" else ()
        kept = tuple(session.tree.keep(path, found.sources[path].content) for path in sorted(lost))
        kept += keep_words(session, found, done.plan, todo)
        aside = keep_other_release(session, found, done.plan)
        transaction.commit(todo, next_ledger(done.plan, found, {}, {}), originals=found.originals)
    after = tuple(replace(outcome, kind="not-needed", detail=phrase("taken out")) for outcome in done.plan.outcomes)
    written = tuple(change.path for change in todo)
    plan = replace(done.plan, outcomes=after)
    done = replace(done, plan=plan, written=written, kept=kept, aside=aside, not_in_ledger=left)
    return replace(done, seconds=time.monotonic() - started)


def _not_in_ledger(session: Session, ledger: Ledger) -> tuple[str, ...]:
    try:
        records = session.records
    except RecordError:  # A revert needs none: it has what it needs from the ledger.
        return ()
    return not_in_ledger(session, {one.id: one.files for one in records if one.id not in ledger.records})


def _planned(
    session: Session, account: Account, ids: frozenset[str], tampering: Tampering
) -> tuple[ApplyResult, TreeSnapshot]:
    ledger = account.ledger
    for name in sorted(ids - set(ledger.records)):
        applied = ", ".join(ledger.records)
        if name in _not_in_ledger(session, ledger):
            raise UsageError(
                phrase("{name} is not applied to {root}", name=name, root=session.tree.root),
                cause=phrase("its edits are in the files and not in the ledger, as in a git clone"),
                advice=phrase("Enter it there first: uky-patch adopt {name}", name=name),
            )
        raise UsageError(
            phrase("{name} is not applied to {root}", name=name, root=session.tree.root),
            advice=phrase("Applied are: {records}.", records=applied) if applied else phrase("Applied are: none."),
        )
    found = read_snapshot(session, ledger, (), tampering=tampering)
    planned = plan_revert(ids, found.situation)
    return apply_result(planned, found, changes(planned, found), account), found
