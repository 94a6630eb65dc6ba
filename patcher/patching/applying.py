"""Apply: plan, write all or nothing, and keep the ledger.

`apply` below is the whole way. It looks at the tree without a lock and plans; a plan with a failed record ends there,
and so does one that changes nothing. Under the lock it looks again, and plans again if anything is another. Then it
writes the files with the ledger in one transaction, and makes one git commit a record if that is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patcher.check.planning import plan_on_tree
from patcher.git.refusing import refuse_foreign_changes, refuse_under_way
from patcher.i18n import phrase
from patcher.patching.committing import (
    Effect,
    commit_owed,
    commit_steps,
    require_checkout,
    steps_of,
)
from patcher.patching.result import ApplyResult
from patcher.patching.status import note
from patcher.plan.inputs import Request
from patcher.plan.outcome import Plan, RecordOutcome
from patcher.plan.planning import hand_made_spots, marked_spots
from patcher.rewrite.texts import remarks
from patcher.session.pre_images import PreImages
from patcher.session.snapshot import Tampering, TreeSnapshot, read_snapshot, record_file_names
from patcher.session.tree_access import lock_timeout, read_consistently, report_lock_owner, report_recovery
from patcher.tree import Change, Ledger
from patcher.worktree.account import Account
from patcher.worktree.hashing import ABSENT
from patcher.worktree.ledger import AppliedRecord, PatchedFile, now

if TYPE_CHECKING:
    from patcher.records.model import Record
    from patcher.session.session import Session
    from patcher.worktree.reading import Reading


@dataclass(frozen=True, slots=True)
class Order:
    """What apply was asked for."""

    request: Request
    allow_dirty: bool = False
    commit: bool = False
    merge: bool = False
    """Take changes over that people made in patched files since, and forget files that are gone."""
    remember: bool = False
    """Leave out what is skipped from now on."""
    pre_images: Mapping[str, bytes | None] = field(default_factory=dict)
    """For `adopt`: what files would be without the edits that a hand has made, by path; None: they would not be."""

    @property
    def tampering(self) -> Tampering:
        """What becomes of patched files that somebody has edited since: see `read_snapshot`."""
        return "merge" if self.merge else "refuse"


def preview(session: Session, order: Order) -> ApplyResult:
    """What `apply` would do. Writes nothing. Raises UsageError where it is not known which environment trains."""
    session.require_environment()
    return preview_with_snapshot(session, order)[0]


def preview_with_snapshot(session: Session, order: Order) -> tuple[ApplyResult, TreeSnapshot]:
    """The same, and the snapshot of the tree that it was planned on."""

    def work(reading: Reading) -> tuple[ApplyResult, TreeSnapshot]:
        found = _snapshot(session, order, reading.ledger)
        planned = plan_on_tree(session, order.request, found.situation)
        return apply_result(planned, found, changes(planned, found), reading.account), found

    return read_consistently(session.tree, work)


def _snapshot(session: Session, order: Order, ledger: Ledger) -> TreeSnapshot:
    names, pre_images = record_file_names(session), order.pre_images
    return read_snapshot(session, ledger, names, tampering=order.tampering, pre_images=pre_images)


def apply(session: Session, order: Order) -> ApplyResult:
    """Write what is needed, and commit it if that is asked for; first also what an earlier run could not commit.

    Raises TreeError where the tree cannot be written, or not be committed; then nothing has changed, or it says what.
    Raises UsageError where it is not known which environment trains.
    """
    session.require_environment()
    started = time.monotonic()
    place = require_checkout(session) if order.commit else None
    commits = commit_owed(session, place) if place is not None else ()
    first, seen = preview_with_snapshot(session, order)
    refuse_unfinished_merge(session, seen, first.would_change)
    wanted = first.would_change or first.plan.pending or first.taken_over or first.pre_images.stale
    if first.failed or not wanted:
        return replace(first, seconds=time.monotonic() - started, commits=commits)
    with session.tree.transaction("apply", wait=lock_timeout(), on_wait=report_lock_owner) as transaction:
        report_recovery(transaction.recovered)
        found = _snapshot(session, order, transaction.ledger)
        # Between the first look and the lock somebody may have saved a file, or another uky-patch may have run.
        same = found.sources == seen.sources and found.ledger == seen.ledger
        planned = first.plan if same else plan_on_tree(session, order.request, found.situation)
        todo = changes(planned, found)
        done = apply_result(planned, found, todo, transaction.account)
        if done.failed:
            return replace(done, seconds=time.monotonic() - started, commits=commits)
        refuse_unfinished_merge(session, found, done.would_change)
        if not order.allow_dirty:
            refuse_foreign_changes(session.tree, found.ledger, {change.path: change.content for change in todo})
        after, ledger = as_written(session, order, planned, found)
        aside = keep_other_release(session, found, planned)
        kept = keep_words(session, found, planned, todo)
        if place is None:
            transaction.commit(todo, ledger, originals=found.originals)
        else:
            steps = steps_of(session, order.request, planned, found, {change.path for change in todo})
            back = tuple(Change(each.path, each.sha256, found.content(each.path)) for each in todo)
            effect = Effect(todo, ledger, found.originals)
            commits += commit_steps(place, transaction, steps, effect, Effect(back, transaction.ledger))
    written = tuple(change.path for change in todo)
    seconds = time.monotonic() - started
    return replace(done, plan=after, written=written, seconds=seconds, commits=commits, aside=aside, kept=kept)


def refuse_unfinished_merge(session: Session, found: TreeSnapshot, written: Collection[str]) -> None:
    """Raise TreeError if git is in the middle of a merge, and what is to be written, or to be forgotten as changed
    since, is the work of that merge."""
    refuse_under_way(session.tree, found.whole, {*written, *found.changed, *found.gone, *found.replaced.paths})


def changes(plan: Plan, snapshot: TreeSnapshot) -> tuple[Change, ...]:
    """The files whose bytes are not yet as planned."""
    found = []
    for path in plan.files:
        content = planned_bytes(path, plan, snapshot)
        if content != snapshot.content(path):
            found.append(Change(path, snapshot.sha256(path), content))
    return tuple(found)


def planned_bytes(path: str, plan: Plan, snapshot: TreeSnapshot) -> bytes | None:
    """The file as planned; byte for byte the pre-image where no record is left in it. None: it is not to be there."""
    return snapshot.encode(path, plan.files[path].text)


def as_written(session: Session, order: Order, planned: Plan, found: TreeSnapshot) -> tuple[Plan, Ledger]:
    """The plan as it reads once it is written, and the ledger for it, with the note that `status` answers from."""
    texts = _texts_after(planned, found)
    after = plan_as_written(planned, session, texts)
    ledger = next_ledger(planned, found, {record.id: record for record in session.records}, session.versions)
    after = replace(after, outcomes=tuple(replace(one, since=()) for one in after.outcomes))
    # The note answers a plain `status`, so only what a plain `apply` has planned may become one.
    if order.request == session.request():
        ledger = replace(ledger, basis=note(session, after, _shas_after(found, changes(planned, found)), texts))
    return after, ledger


def next_ledger(
    plan: Plan, snapshot: TreeSnapshot, records: Mapping[str, Record], versions: Mapping[str, str]
) -> Ledger:
    """The ledger once `plan` is written: its files with their hashes, its records as they are now."""
    files = {path: file for path, file in snapshot.ledger.files.items() if path not in snapshot.gone}
    for path, planned in plan.files.items():
        if not planned.records:
            files.pop(path, None)
            continue
        known, source = files.get(path), snapshot.sources.get(path)
        original = _original_of(path, snapshot)
        patched = Change(path, original, planned_bytes(path, plan, snapshot)).sha256
        mode = known.mode if known is not None and known.mode is not None else source.mode if source else None
        mode = None if original == ABSENT else mode
        release = snapshot.release or (known.release if known is not None else "")
        files[path] = PatchedFile(original, patched, planned.records, mode, release, made=planned.made)
    entries = {}
    for name in dict.fromkeys(name for file in files.values() for name in file.records):
        known_record = snapshot.ledger.records.get(name)
        record = records.get(name)
        if known_record is not None and (record is None or known_record.source == record.source):
            entries[name] = known_record
        elif record is not None:
            entries[name] = AppliedRecord(record.source, dict(versions), now())
    return Ledger(files=files, records=entries)


def _original_of(path: str, snapshot: TreeSnapshot) -> str:
    """The digest of what the file is without any record."""
    if path in snapshot.merged:
        return Change(path, "", snapshot.merged[path]).sha256
    known = snapshot.ledger.files.get(path)
    return known.original if known is not None else snapshot.sha256(path)


def plan_as_written(plan: Plan, session: Session, texts: Mapping[str, str]) -> Plan:
    """The plan as it reads once it is written: what was pending is applied, or is no longer there.

    What was done by hand stands where it stands in `texts`, the files as written.
    """
    records = {record.id: record for record in session.records}

    def after(outcome: RecordOutcome) -> RecordOutcome:
        if outcome.kind in ("adopted", "resolved") and outcome.id in records:
            found = hand_made_spots(records[outcome.id], texts, session.versions.get("verl", ""), session.config.marker)
            return replace(outcome, spots=found or outcome.spots)
        if outcome.kind != "pending":
            return outcome
        if any(outcome.id in file.records for file in plan.files.values()):
            spots = marked_spots(outcome, plan.files, session.config.marker)
            return replace(outcome, kind="applied", spots=spots or outcome.spots)
        return replace(outcome, kind="not-needed", detail=phrase("taken out"))

    return Plan(tuple(after(outcome) for outcome in plan.outcomes), plan.files)


def keep_words(session: Session, found: TreeSnapshot, planned: Plan, todo: tuple[Change, ...]) -> tuple[str, ...]:
    """Copies of the files that lose what a hand has written behind a record's marker. Returns where.

    limit = 5  # Uky[fork-limit]: the cluster has no more
    """
    kept = []
    for path in (change.path for change in todo):
        state, word = found.situation.files[path], session.config.marker
        if (state.since or state.made) and state.current is not None:
            before, after = (
                {words for _, words in remarks(t, word)} for t in (state.current, planned.texts.get(path, ""))
            )
            kept += [session.tree.keep(path, found.sources[path].content)] if before - after else []
    return tuple(kept)


def keep_other_release(session: Session, found: TreeSnapshot, planned: Plan) -> str:
    """Keep the ledger's entries of files that another release has replaced, with their pre-images. Returns where."""
    forgotten = found.forgotten(planned.files)
    return session.tree.keep_release(forgotten, found.replaced.before) if forgotten else ""


def apply_result(
    planned: Plan, found: TreeSnapshot, todo: tuple[Change, ...], account: Account | None = None
) -> ApplyResult:
    """The plan as the result of a run that has written nothing yet; `todo`: the files that it changes."""
    before = {change.path: found.situation.files[change.path].current or "" for change in todo}
    changed = frozenset(outcome.id for outcome in planned.pending)
    paths = tuple(change.path for change in todo)
    about = PreImages(account or Account(), found.replaced)
    changed_since = tuple(p for p in found.merged if p in found.changed and p in planned.files)
    return ApplyResult(
        planned, before, paths, changed=changed, taken_over=(*changed_since, *found.gone), pre_images=about
    )


def _texts_after(plan: Plan, found: TreeSnapshot) -> dict[str, str]:
    """The files that records name, as they are once `plan` is written."""
    current = {path: state.current for path, state in found.situation.files.items() if state.current is not None}
    return {path: text for path, text in current.items() if path not in plan.files} | plan.texts


def _shas_after(found: TreeSnapshot, todo: tuple[Change, ...]) -> dict[str, str]:
    return {path: found.sha256(path) for path in found.situation.files} | {each.path: each.sha256 for each in todo}
