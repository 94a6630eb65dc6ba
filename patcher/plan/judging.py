"""What came of a record's edits -> its outcome: pending, adopted, resolved, not needed, or why it cannot be applied.

Of several edits that failed the worst decides, by `_SEVERITY`. An edit without an anchor is no failure where it may be
for another release of verl, or where the fork provably uses nothing of what it changes (`excused` of `replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from patcher.i18n import Phrases, phrase
from patcher.packages.versions import is_prerelease
from patcher.plan.applicability import Applicability
from patcher.plan.inputs import PlanInputs
from patcher.plan.outcome import Applied, FileState, Kind, RecordOutcome, Spot
from patcher.plan.own_imports import AbsentName
from patcher.plan.replay import EditResult, Missing, Replayed, excused
from patcher.records.model import Record
from patcher.rewrite.edits import Insert
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Candidate,
    OtherFile,
    Overlap,
    Rewritten,
    Unparseable,
)


def outcome_of(
    record: Record, done: Replayed, needed: Applicability, inputs: PlanInputs, known: Applied | None
) -> RecordOutcome:
    """The outcome of a record after its edits were tried. `known`: what the ledger has of it, if it is applied."""
    tampered = [one for one in done.results if inputs.files[one.edit.file].tampered and (known or one.landed)]
    if tampered:
        files = known.files if known is not None else record.files
        outcome = RecordOutcome(record.id, "pending", phrase(""), files)
        return tampered_outcome(outcome, inputs.files[tampered[0].edit.file], inputs)
    spots = places(done)
    if done.made:
        by_hand = sum(len(result.outcome.by_hand) for result in done.results if isinstance(result.outcome, Rewritten))
        by_hand += sum(isinstance(result.outcome, AlreadyDone) for result in done.results)
        hand = phrase("{count} of its places by hand already", count=by_hand) if by_hand else phrase("")
        own = phrase("this fork handles it in its own way in {files}", files=", ".join(_unused(done)))
        gone = sorted({result.edit.file for result in done.results if result.file_taken_out})
        absent = phrase("left out, as this tree does not have it: {files}", files=", ".join(gone))
        note = Phrases((hand, own if _unused(done) else phrase(""), absent if gone else phrase(""), needed.note))
        return RecordOutcome(record.id, "pending", note or needed.reason, done.files, spots, note=note)
    if not done.results:
        detail = phrase("none of its edits is for verl {verl}", verl=inputs.verl)
        return RecordOutcome(record.id, "not-needed", detail, record.files)
    left = [result for result in done.results if not result.settled]
    blamed = [result for result in left if not excused(result)]
    if not blamed and len(left) < len(done.results):
        return _by_hand(record, done, inputs, spots)
    elsewhere = not blamed and not _unused(done)
    nowhere = not any(map(_is_at_home, done.results))
    # No file has what the record is about, and no version told that it must: the record is for another release.
    if nowhere and (elsewhere or (needed.answer == "maybe" and all(map(_is_absent, left)))):
        between = "verl {verl} lies between releases, so its files decide: no such place here"
        newer = "this version is newer than any that the record was tried on, so the files decide: no such place here"
        detail = phrase(between if is_prerelease(inputs.verl) else newer, verl=inputs.verl)
        return RecordOutcome(record.id, "not-needed", detail, record.files, nearest=_nearest_by_file(left))
    if not blamed:
        detail = phrase("this fork handles it in its own way: what the record changes is used nowhere in it")
        return RecordOutcome(record.id, "resolved", detail, record.files)
    failure = _failure(record, blamed)
    if failure.kind in ("drifted", "missing-file") and inputs.remaining is not None and inputs.remaining(record) == ():
        detail = phrase("not needed here: check finds nothing of what the record repairs, this fork handles it itself")
        return RecordOutcome(record.id, "resolved", detail, record.files)
    return failure


def places(done: Replayed) -> tuple[Spot, ...]:
    """Where the edits were made, or have been made by hand."""
    return tuple(Spot(result.edit.file, line) for result in done.results if result.settled for line in _lines(result))


def _unused(done: Replayed) -> tuple[str, ...]:
    """The files that provably use nothing of what the record changes there."""
    return tuple(dict.fromkeys(result.edit.file for result in done.results if result.unused))


def _is_at_home(result: EditResult) -> bool:
    """Whether the file has what the edit is about; an import can be put at the head of any file."""
    edit = result.edit
    anywhere = isinstance(edit, Insert) and edit.anchor is None and (edit.where == "prologue" or edit.within is None)
    return result.settled and not anywhere


def _is_absent(result: EditResult) -> bool:
    return isinstance(result.outcome, AnchorMissing | Missing | AbsentName)


def _by_hand(record: Record, done: Replayed, inputs: PlanInputs, spots: tuple[Spot, ...]) -> RecordOutcome:
    """Of a record whose places are all made: adopted or resolved; drifted where `check` still finds what it repairs."""
    marked = any(isinstance(result.outcome, AlreadyDone) and result.outcome.marked for result in done.results)
    claimed = "verl" in record.when.versions and not is_prerelease(inputs.verl)
    files = tuple(dict.fromkeys(spot.file for spot in spots))
    left = (inputs.remaining(record) if inputs.remaining is not None else None) or ()
    # A recipe of the fork may have its own copy of what the fork has mended in the files that the record is about.
    aside = tuple(one for one in left if one.spot.file not in record.files and not one.breaks)
    if forgotten := [one for one in left if one not in aside]:
        text = "by hand in part: {file}:{line} still has what the record repairs, {symbol}"
        detail = phrase(text, file=forgotten[0].spot.file, line=forgotten[0].spot.line, symbol=forgotten[0].symbol)
        return RecordOutcome(record.id, "drifted", detail, record.files, tuple(one.spot for one in left))
    if aside:
        text = "this fork handles it in its own way; {file}:{line} still has {symbol}, which the plain job does not run"
        detail = phrase(text, file=aside[0].spot.file, line=aside[0].spot.line, symbol=aside[0].symbol)
        return RecordOutcome(record.id, "resolved", detail, files, spots)
    if marked:
        return RecordOutcome(record.id, "adopted", phrase("by hand, marked, same effect"), files, spots)
    if not claimed and any(result.resolved for result in done.results):
        return RecordOutcome(record.id, "resolved", phrase("upstream's own fix is here"), files, spots)
    return RecordOutcome(record.id, "adopted", phrase("by hand, same effect"), files, spots)


def _failure(record: Record, blamed: Sequence[EditResult]) -> RecordOutcome:
    """The outcome of a record that cannot be applied, by the worst of its failed edits."""
    worst = min(blamed, key=lambda result: _SEVERITY.index(_kind(result)))
    file, kind = worst.edit.file, _kind(worst)
    spots: tuple[Spot, ...] = ()
    match worst.outcome:
        case AnchorMissing(expected, found):
            detail = phrase(
                "{file}: expected {expected} {expected:place|places}, found {found}",
                file=file,
                expected=expected,
                found=found,
            )
        case AnchorAmbiguous(expected, lines):
            detail = phrase(
                "{file}: expected {expected} {expected:place|places}, found {found} (lines {lines})",
                file=file,
                expected=expected,
                found=len(lines),
                lines=", ".join(map(str, lines)),
            )
            spots = tuple(Spot(file, line) for line in lines)
        case Overlap(line, other):
            detail = phrase(
                '{file}:{line}: {other} changes this line too; say after = ["{other}"] if both are meant',
                file=file,
                line=line,
                other=other,
            )
            spots = (Spot(file, line),)
        case OtherFile(line):
            detail = phrase(
                "{file} is here with other content, from line {line} on, and is not replaced: "
                "give one of the two another name, or take the file away",
                file=file,
                line=line,
            )
            spots = (Spot(file, line),)
        case Unparseable(line, message):
            detail = phrase("{file}:{line}: {message}", file=file, line=line, message=message)
            spots = (Spot(file, line),)
        case Missing():
            detail = phrase("{file} is not in this tree", file=file)
        case AbsentName(_, name, imported=True):
            detail = phrase("{file}: it would import {name}, which this tree does not have", file=file, name=name)
        case AbsentName(_, name):
            detail = phrase("{file}: it would use {name}, which this tree does not have", file=file, name=name)
        case _:
            raise AssertionError(worst)
    return RecordOutcome(record.id, kind, detail, record.files, spots, nearest=_nearest_by_file(blamed))


_SEVERITY: tuple[Kind, ...] = ("unparseable", "missing-file", "conflict", "ambiguous", "drifted")


def _kind(result: EditResult) -> Kind:
    match result.outcome:
        case Missing():
            return "missing-file"
        case AnchorAmbiguous():
            return "ambiguous"
        case Overlap() | OtherFile():
            return "conflict"
        case Unparseable():
            return "unparseable"
        case _:
            return "drifted"


def _nearest_by_file(blamed: Iterable[EditResult]) -> tuple[tuple[str, Candidate], ...]:
    return tuple(
        (result.edit.file, result.outcome.nearest)
        for result in blamed
        if isinstance(result.outcome, AnchorMissing) and result.outcome.nearest is not None
    )


def _lines(result: EditResult) -> tuple[int, ...]:
    match result.outcome:
        case Rewritten(_, lines) | AlreadyDone(lines):
            return lines
        case _:
            return ()


def tampered_outcome(outcome: RecordOutcome, changed: FileState, inputs: PlanInputs) -> RecordOutcome:
    """The outcome of an applied record of which one file was changed since."""
    text = "{file} was changed since the record was applied"
    if changed.since:
        text = "{file} was changed or laid out anew since the record was applied; what it made still holds"
    since = tuple(file for file in outcome.files if inputs.files[file].since)
    return replace(outcome, kind="tampered", detail=phrase(text, file=changed.path), since=since)
