"""Git around `apply --commit`: one commit for each record, together with the files, or neither.

What an earlier run has written and could not commit, as it was killed in between, is noted (`patcher.git.owed`); the
next `apply --commit` commits it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.errors import TreeError, message_of
from patcher.git import owed
from patcher.git.checkout import Checkout, checkout
from patcher.git.owed import Owed
from patcher.git.publishing import Publication, require_ready
from patcher.git.series import REMOVED, Commit, StoredCommit, below_top, committed, require_stored, series, store
from patcher.i18n import Phrase, Phrases, phrase
from patcher.plan.stages import stages
from patcher.session.tree_access import lock_timeout, report_lock_owner, report_recovery
from patcher.tree import Change, Ledger
from patcher.tree.source import sha256_of

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from patcher.plan.inputs import Request
    from patcher.plan.outcome import Plan
    from patcher.plan.stages import Stage
    from patcher.session.session import Session
    from patcher.session.snapshot import TreeSnapshot
    from patcher.worktree.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Effect:
    """What a transaction is to do to the tree."""

    changes: tuple[Change, ...]
    ledger: Ledger
    originals: Mapping[str, bytes] = field(default_factory=dict)


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


def commit_steps(
    place: Checkout, transaction: Transaction, steps: Iterable[Commit], forth: Effect, back: Effect
) -> tuple[str, ...]:
    """Take the effect `forth` on the tree and commit it, one commit a step: both or neither; `back` undoes it.

    Returns the commits' full hashes.

    Raises:
        TreeError: nothing was written; or, where what was written could not be taken back, which files stand written
            and uncommitted. The next run commits them.
    """
    with contextlib.ExitStack() as held:
        # All that git can refuse is asked of it first, and the branch is locked. Then it is noted what is owed to git,
        # should this process be killed; then the files change; then the branch moves.
        with _retitled(phrase("{root}: cannot be committed, so nothing was written", root=place.root)):
            require_ready(place)
            stored = store(place, tuple(steps))
            made = series(place, stored)
            publication = held.enter_context(Publication(place, made))
        if made.commits:
            owed.write(place, Owed(stored, {each.path: each.sha256 for each in forth.changes}))
        before = transaction.ledger
        try:
            transaction.commit(forth.changes, forth.ledger, originals=forth.originals)
            with _retitled(phrase("{root}: cannot be committed, so the edits were taken back", root=place.root)):
                publication.finish()
        except BaseException as error:
            try:
                if not publication.is_published():
                    publication.take_back()
                    if transaction.ledger is not before:
                        transaction.commit(back.changes, back.ledger)
            except (TreeError, OSError) as second:
                raise _left_over(forth, error, second) from error
            owed.remove(place)
            raise
    owed.remove(place)
    return made.commits


@contextlib.contextmanager
def _retitled(title: Phrase) -> Iterator[None]:
    """Say of a refusal what it means for the files."""
    try:
        yield
    except TreeError as error:
        why = Phrases((error.title, error.cause), ": ") if error.cause else error.title
        raise TreeError(title, cause=why, advice=error.advice) from error


def _left_over(forth: Effect, error: BaseException, second: BaseException) -> TreeError:
    return TreeError(
        phrase("written and not committed: {files}", files=", ".join(change.path for change in forth.changes)),
        cause=phrase("{why}; before that: {error}", why=message_of(second), error=message_of(error)),
        advice=phrase("Remove the cause. The next uky-patch apply --commit commits them."),
    )


def commit_owed(session: Session, place: Checkout) -> tuple[str, ...]:
    """Commit what an earlier run has written and could not commit. Files that were changed since are left out.

    Raises TreeError where git refuses; then it is still owed.
    """
    note = owed.read(place)
    if note is None:
        return ()
    require_ready(place)
    with session.tree.transaction("commit", wait=lock_timeout(), on_wait=report_lock_owner) as transaction:
        report_recovery(transaction.recovered)
        steps = _still_owed(session, place, note)
        made = series(place, steps)
        with Publication(place, made) as publication:
            publication.finish()
        owed.remove(place)
    return made.commits


def _still_owed(session: Session, place: Checkout, note: Owed) -> tuple[StoredCommit, ...]:
    """What stands on the disk as it was written and is not in HEAD."""
    last = {path: blob for step in note.steps for path, blob in step.blobs.items()}
    there = committed(place, list(last))
    wanted = set()
    for path, sha in note.shas.items():
        source = session.tree.read(path)
        below = below_top(place, path)
        if sha256_of(source) == sha and below in last and there.get(below, REMOVED) != last[below]:
            wanted.add(below)
    require_stored(place, [entry[1] for path, entry in last.items() if path in wanted and entry != REMOVED])
    steps = []
    for step in note.steps:
        blobs = {path: blob for path, blob in step.blobs.items() if path in wanted}
        steps += [StoredCommit(step.message, blobs)] if blobs else []
    return tuple(steps)


def steps_of(
    session: Session, request: Request, plan: Plan, found: TreeSnapshot, paths: AbstractSet[str]
) -> Iterator[Commit]:
    """One commit for each record that comes in or changes, after one for those that are taken out.

    Lines that are written anew without such a record, as another uky-patch lays them out, are committed last.
    """
    committed: dict[str, str | None] = {}
    for stage in stages(session.records, request, plan, found.situation):
        texts = {path: text for path, text in stage.texts.items() if path in paths}
        committed |= texts
        if texts:
            yield Commit(_message(stage), {path: found.encode(path, text) for path, text in texts.items()})
    planned = {path: plan.files[path].text for path in sorted(paths)}
    rest = {path: text for path, text in planned.items() if path not in committed or committed[path] != text}
    if rest:
        message = "Write the edits of records anew"
        yield Commit(message, {path: found.encode(path, text) for path, text in rest.items()})


def _message(stage: Stage) -> str:
    parts = [f"{record.title}\n\n{record.reason}" for record in stage.records]
    if parts:
        parts.append(f"Applied by uky-patch as {', '.join(record.id for record in stage.records)}.")
    else:
        parts.append("Take out records that are no longer needed")
    if stage.taken_out:
        parts.append(f"Taken out by uky-patch: {', '.join(stage.taken_out)}.")
    return "\n\n".join(parts)
