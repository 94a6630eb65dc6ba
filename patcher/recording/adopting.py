"""Edits made by hand that equal a record's come under the ledger: reverted, checked and sent like our own.

The file gets the pre-image that it would have had: without these edits, with all others. Then the records are applied
to it, so that the file is what `apply` writes, and a revert puts the pre-image there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patcher.errors import TreeError, UsageError
from patcher.git.checkout import checkout
from patcher.i18n import Phrase, phrase
from patcher.patching.applying import Order, apply, preview
from patcher.patching.result import ApplyResult
from patcher.patching.status import records_status
from patcher.plan.outcome import Plan
from patcher.recording.base import UPSTREAM, Base, find_base
from patcher.recording.known import with_all
from patcher.records.model import Record
from patcher.records.unfinished import unfinished
from patcher.rewrite.edits import CreateFile
from patcher.rewrite.marker import split_whole, without_markers
from patcher.rewrite.merging import three_way
from patcher.rewrite.texts import same, with_blank_lines_of
from patcher.tree.source import Codec, Source, Undecodable, decode, encode

if TYPE_CHECKING:
    from patcher.session.session import Session


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adopt came to."""

    done: ApplyResult
    base: Phrase
    records: tuple[Record, ...]
    """The records that were, or would be, taken over."""
    refused: tuple[tuple[str, Phrase], ...] = ()
    """Records that a hand has made and that cannot be taken over, with why."""
    kept: tuple[str, ...] = ()
    """Where copies of files went whose edits are in no commit."""


def adopt(session: Session, ids: Collection[str], named: str | None, *, dry_run: bool) -> Adopted:
    """Take records over that a hand has made; all of them where no ids are given.

    Raises:
        UsageError: there is no such record, or a hand has not made it; it is not known which environment trains.
        TreeError: the tree cannot be read or written.
    """
    session.require_environment()
    wanted = _wanted(session, ids)
    base = _base(session, named, wanted)
    before, after, codecs = _texts(session, base, {file for record in wanted for file in record.files})
    order = [record for record in session.records if record in wanted]
    taken, refused = _separable(order, before, after, base)
    if not taken:  # A request without ids would be one for all records.
        return Adopted(ApplyResult(Plan(()), {}, ()), base.name, (), tuple(refused))
    pre_images = _pre_images(taken, before, after, codecs, base)
    request = session.request(tuple(record.id for record in taken))
    asked = Order(request, allow_dirty=True, pre_images=pre_images)
    planned = preview(session, asked)
    if dry_run or planned.failed:
        return Adopted(planned, base.name, tuple(taken), tuple(refused))
    kept = _keep_uncommitted(session, planned.would_change)
    return Adopted(apply(session, asked), base.name, tuple(taken), tuple(refused), kept)


def _wanted(session: Session, ids: Collection[str]) -> list[Record]:
    """The records that a hand has made, those among them that are off by default too."""
    for name in ids:
        session.record(name)
    outcomes = {outcome.id: outcome for outcome in records_status(session).outcomes}
    off = tuple(
        record.id
        for record in session.records
        if not record.enabled and outcomes[record.id].kind != "applied" and not unfinished(record)
    )
    if off:
        asked = preview(session, Order(session.request(off))).plan.outcomes
        outcomes |= {outcome.id: outcome for outcome in asked if outcome.id in off}
    for name in ids:
        if outcomes[name].kind != "adopted":
            raise UsageError(
                phrase("{id}: not made by hand here, so that there is nothing to adopt", id=name),
                cause=outcomes[name].detail,
                advice=phrase("Records that can be adopted are shown by: uky-patch status"),
            )
    return [
        record for record in session.records if outcomes[record.id].kind == "adopted" and (not ids or record.id in ids)
    ]


def _base(session: Session, named: str | None, records: Collection[Record]) -> Base:
    """What the files were before the edits: of HEAD, if they are in no commit yet, else of the verl they are from."""
    if not records:
        return Base(phrase(""), "", {}, {})
    files = {file for record in records for file in record.files}
    # A record may have made a file of any name, such as README.md.
    new = any(isinstance(edit, CreateFile) for record in records for edit in record.edits)
    if named is not None:
        return find_base(session, named, new=new)
    if checkout(session.tree.root) is not None:
        base = find_base(session, "HEAD", new=new)
        if files <= base.after.keys() | base.unreadable.keys():
            return base
    return find_base(session, UPSTREAM, new=new)


def _texts(
    session: Session, base: Base, files: Collection[str]
) -> tuple[dict[str, str], dict[str, str], dict[str, Codec]]:
    """The files before the edits and now, without markers, and how they are encoded.

    One that was not there before the edits is among those that are there now alone.
    """
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    codecs: dict[str, Codec] = {}
    word = session.config.marker
    for path in sorted(files & base.after.keys()):
        old, new = base.before[path], base.after[path]
        if new is None:
            continue
        one, two = decode(Source(path, old or b"", "", 0)), decode(Source(path, new, "", 0))
        if not isinstance(one, Undecodable) and not isinstance(two, Undecodable):
            before |= {path: without_markers(one[0], word)} if old is not None else {}
            after[path] = without_markers(two[0], word)
            codecs[path] = two[1]
    return before, after, codecs


def _separable(
    records: Collection[Record], before: Mapping[str, str], after: Mapping[str, str], base: Base
) -> tuple[list[Record], list[tuple[str, Phrase]]]:
    """The records whose edits can be told apart from all others, and why the rest cannot."""
    taken: list[Record] = []
    refused: list[tuple[str, Phrase]] = []
    texts = dict(before)
    for record in records:
        unreadable = next((base.unreadable[file] for file in record.files if file in base.unreadable), None)
        if unreadable is not None:
            refused.append((record.id, unreadable))
            continue
        made = with_all([record], texts, base.verl)
        changed = [file for file in made if made[file] != texts.get(file)]
        if not changed:
            why = phrase("compared with {base} its files are the same, or it finds no place there", base=base.name)
            refused.append((record.id, why))
        elif not all(_is_apart(made[file], after.get(file), texts.get(file)) for file in changed):
            refused.append(
                (record.id, phrase("its lines stand there in another form, or changed together with others"))
            )
        else:
            texts = made
            taken.append(record)
    return taken, refused


def _pre_images(
    records: Collection[Record],
    before: Mapping[str, str],
    after: Mapping[str, str],
    codecs: Mapping[str, Codec],
    base: Base,
) -> dict[str, bytes | None]:
    """What the files would be without the records' edits; None of one that would not be there.

    Raises TreeError where the records do not make of it what is there now."""
    made = with_all(records, before, base.verl)
    contents: dict[str, bytes | None] = dict.fromkeys(made.keys() - before.keys())
    found: dict[str, str] = {}
    for file in before:
        if made[file] != before[file]:
            merged = _merged(made[file], after[file], before[file])
            assert merged is not None
            found[file] = merged
    again = with_all(records, found, base.verl)
    for file in found:
        if not same(again[file], after[file], file):
            raise TreeError(
                phrase("{file}: cannot be adopted; nothing was written", file=file),
                cause=phrase("what the records make of it is not what is there"),
                advice=phrase("Record what differs first: uky-patch record."),
            )
    for file, text in found.items():
        original = base.before[file]
        whole = text == before[file] and original is not None
        contents[file] = original if whole and original is not None else encode(text, codecs[file], file)
    return contents


def _is_apart(made: str, after: str | None, before: str | None) -> bool:
    """Whether what a record made can be taken out of the fork's file. A file that it has made goes as a whole."""
    if after is None or before is None:
        return after is not None and same(made, after)
    return _merged(made, after, before) is not None


def _merged(made: str, after: str, before: str) -> str | None:
    """The fork's text with what the records made taken out again; None where other edits are in the same lines."""
    made = with_blank_lines_of(made, after)  # A record writes blank lines in its own way.
    if made == after:
        return before
    lines = three_way(split_whole(made), split_whole(after), split_whole(before))
    return None if lines is None else "".join(lines)


def _keep_uncommitted(session: Session, paths: Collection[str]) -> tuple[str, ...]:
    """Copies of the files whose edits are in no commit: their markers and old lines are written anew."""
    place = checkout(session.tree.root)
    ledger = session.tree.ledger()
    dirty = paths if place is None else place.foreign_changes(sorted(paths), ledger, session.tree.read)
    kept = []
    for path in sorted(dirty):
        source = session.tree.read(path)
        if source is not None:
            kept.append(session.tree.keep(path, source.content))
    return tuple(kept)
