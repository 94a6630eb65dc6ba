"""What to do next where the records stand as they do: one command, tried out in memory before it is named.

`patcher.patching.applying` takes a seventh of the time of a `status` to import, so that it is imported where something
has to be tried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patcher.errors import UkyError
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.plan.outcome import FAILED, RecordOutcome

if TYPE_CHECKING:
    from patcher.patching.applying import Order
    from patcher.patching.result import ApplyResult
    from patcher.patching.status import RecordsStatus
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command: the arguments of uky-patch, without the options that every command shares."""

    words: tuple[str, ...]
    about: Phrase | Phrases = NOTHING
    """What it does to the work of people, where that needs saying."""
    instead: Phrase | Phrases = NOTHING
    """What is to be done where that is no command of uky-patch; then there are no words."""


def after_status(session: Session, status: RecordsStatus) -> NextStep | None:
    """The command that brings the tree nearer to a clean status; None: there is none, or no environment is known."""
    if not session.environment.known:
        return None
    if (step := after_git(session, status.outcomes)) is not None:
        return step
    if not status.from_note and (step := after_merged_verl(session)) is not None:
        return step
    if any(outcome.kind in FAILED for outcome in status.outcomes):
        from patcher.patching.applying import Order

        return after_failure(session, Order(session.request()), status.outcomes, look=True)
    if status.pre_images.stale:
        return NextStep(("apply",))
    if not status.pre_images and any(outcome.kind == "pending" for outcome in status.outcomes):
        return NextStep(("apply", "--diff"))
    adopted = {one.id: one.files for one in status.outcomes if one.kind == "adopted"}
    if not status.pre_images and adopted:
        from patcher.patching.status import not_in_ledger

        names = not_in_ledger(session, adopted)
        return adopting(names) if names else None
    return None


def after_git(session: Session, outcomes: Iterable[RecordOutcome]) -> NextStep | None:
    """To end what git has begun, a merge or a rebase: until then no file that it has changed is written."""
    from patcher.git.under_way import under_way_in

    changed = {file for outcome in outcomes if outcome.kind in FAILED for file in outcome.files}
    going = under_way_in(session.tree.root, changed)
    return NextStep((), going.title, going.end) if going is not None else None


def after_merged_verl(session: Session) -> NextStep | None:
    """Where the tree may be another verl than its file says, no record is skipped or applied before that is known."""
    merged = session.merged_verl
    return NextStep(("status", *merged.assumed)) if merged is not None else None


def adopting(names: Sequence[str]) -> NextStep:
    """What enters records into the ledger that were applied elsewhere."""
    about = phrase(
        "{count} {count:record|records} {count:was|were} applied elsewhere, as in a git clone: the edits are in the "
        "files and not in the ledger. adopt enters them there; then verify guards them, and revert takes them out.",
        count=len(names),
    )
    return NextStep(("adopt", "--all"), about)


def after_preview(session: Session, order: Order, done: ApplyResult) -> NextStep | None:
    """The apply that writes what a dry run without failures has shown; None where it would write nothing."""
    if not (done.would_change or done.pre_images.stale or done.taken_over or done.changed):
        return None
    if (step := after_git(session, done.plan.outcomes)) is not None:
        return step
    return _writing(session, order, done)


def after_failure(
    session: Session, order: Order, outcomes: Sequence[RecordOutcome], *, look: bool = False
) -> NextStep | None:
    """The way on where records cannot be applied: with what people changed, or without the records in question.

    With `look` a command that only shows what would change.
    """
    if (step := after_git(session, outcomes) or after_merged_verl(session)) is not None:
        return step
    changed = [outcome for outcome in outcomes if outcome.kind == "tampered"]
    if changed:
        return after_hand_edits(session, changed)
    failed = [outcome.id for outcome in outcomes if outcome.kind in FAILED]
    on = _without_failing(session, order)
    if on is not None and (on[1].would_change or on[1].pre_images.stale):
        return NextStep((*words(session, on[0]), "--diff")) if look else _writing(session, *on)
    return NextStep(("explain", failed[0])) if failed else None


def after_hand_edits(session: Session, changed: Iterable[RecordOutcome]) -> NextStep | None:
    """The way on where patched files no longer hold what records made: what was changed by hand is kept wherever that
    is possible."""
    from patcher.patching.applying import Order, preview

    changed = tuple(changed)
    if (step := after_git(session, changed)) is not None:
        return step
    ids = tuple(outcome.id for outcome in changed)
    order = Order(session.request(ids), merge=True)
    failed: tuple[str, ...] = ()
    try:
        done = preview(session, order)
        failed = tuple(outcome.id for outcome in done.plan.failed)
        if not done.failed:
            step = _writing(session, replace(order, request=replace(order.request, ids=frozenset())), done)
            return NextStep((*step.words, *ids), Phrases((_KEEPS, step.about)) if step.about else _KEEPS)
    except UkyError:
        pass
    step = after_failed_revert(session, ids)
    if step is not None and step.about == _LOSES and (places := _own(session, failed)):
        merge = session.command("apply", "--merge", *ids)
        instead = phrase("write the change into {places}, then {command}", places=", ".join(places), command=merge)
        return NextStep((), _CLASHES, instead)
    return step


def _own(session: Session, ids: Collection[str]) -> tuple[str, ...]:
    """The files of these records, if all of them are the fork's own, which it may edit; else none."""
    root = session.tree.root
    places = [record.path for record in session.records if record.id in ids]
    own = [path.relative_to(root).as_posix() for path in places if path is not None and path.is_relative_to(root)]
    return tuple(own) if len(own) == len(ids) else ()


def after_failed_revert(session: Session, ids: Sequence[str]) -> NextStep | None:
    """The revert that takes records out all the same: those of `ids`, or all. None where none does."""
    from patcher.patching.reverting import revert

    for asked in dict.fromkeys((tuple(ids), ())):
        for tampering, option in (("merge", "--merge"), ("restore", "--force")):
            try:
                done = revert(session, frozenset(asked), dry_run=True, tampering=tampering)  # type: ignore[arg-type]
            except UkyError:
                continue
            if not done.failed:
                loses = _FORGETS if done.pre_images.replaced.left else _LOSES
                return NextStep(("revert", option, *asked), _WITHOUT if option == "--merge" else loses)
    return None


_KEEPS = phrase("What was changed by hand since stays, and the records are made on top of it.")
_CLASHES = phrase(
    "Lines that records made, or lines right beside them, were changed by hand, so the two cannot be kept together "
    "unless the record says the same. uky-patch revert --force would take that change out of the file."
)
_WITHOUT = phrase("The records are taken out; what was changed by hand since stays.")
_LOSES = phrase(
    "Lines that records made, or lines right beside them, were changed by hand, so the two cannot be kept together: "
    "the file goes back to what it was before the records. What was changed by hand is lost from it; "
    "a copy is kept beside. To keep it, put the change into the record first, and run uky-patch apply --merge."
)
_FORGETS = phrase(
    "Lines that records made were changed in what git or pip has put there: the file stays as it is, and what is in it "
    "counts as edited by hand from then on."
)


def words(session: Session, order: Order) -> tuple[str, ...]:
    """The apply that an order stands for, as arguments."""
    request = order.request
    names = [record.id for record in session.records]
    parts = ["apply", *(name for name in names if name in request.ids)]
    tags = request.tags - {name.removeprefix("tag:") for name in session.config.enable}
    parts += [part for tag in sorted(tags) for part in ("--tag", tag)]
    parts += [part for name in names if name in request.skipped for part in ("--skip", name)]
    given = {
        "--remember": order.remember,
        "--merge": order.merge,
        "--allow-dirty": order.allow_dirty,
        "--commit": order.commit,
    }
    return (*parts, *(option for option, wanted in given.items() if wanted))


def _writing(session: Session, order: Order, done: ApplyResult) -> NextStep:
    """The apply itself, with --allow-dirty where it would be refused without."""
    foreign = _uncommitted(session, done) if not order.allow_dirty else ()
    if not foreign:
        return NextStep(words(session, order))
    about = phrase(
        "{files}: changed and in no commit. Commit that first, or have apply write into it with --allow-dirty.",
        files=", ".join(foreign),
    )
    return NextStep(words(session, replace(order, allow_dirty=True)), about)


def _uncommitted(session: Session, done: ApplyResult) -> Sequence[str]:
    """The files that would change and hold changes of people that are in no commit."""
    from patcher.git.checkout import checkout
    from patcher.git.delivered import as_committed
    from patcher.session.tree_access import read_consistently

    place = checkout(session.tree.root) if done.would_change else None
    if place is None:
        return ()
    ledger = read_consistently(session.tree, lambda reading: reading.ledger)
    foreign = place.foreign_changes(sorted(done.would_change), ledger, session.tree.read)
    texts = {path: done.plan.files[path].text for path in foreign}
    written = {path: text.encode() if text is not None else None for path, text in texts.items()}
    again = as_committed(session.tree.root, written)
    return tuple(path for path in foreign if path not in again)


def _without_failing(session: Session, order: Order) -> tuple[Order, ApplyResult] | None:
    """The same order without the records that cannot be applied, nor those that cannot without these; None for none."""
    from patcher.patching.applying import preview

    for _ in session.records:  # Each round leaves out what failed, without which another record may fail next.
        done = preview(session, order)
        if not done.failed:
            return order, done
        failed = {outcome.id for outcome in done.plan.failed}
        request = order.request
        request = replace(request, ids=request.ids - failed, skipped=request.skipped | failed)
        if failed <= order.request.skipped or (order.request.ids and not request.ids):
            return None
        order = replace(order, request=request)
    return None
