"""Records, versions and sources -> Plan. Pure: status, verify, a dry run and apply all start from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.environment import Environment
from patcher.environment.versions import No, Undecided, satisfies
from patcher.language import Phrases, phrase
from patcher.planning.need import Need, SymbolLookup, need
from patcher.planning.outcome import Applied, FilePlan, FileState, Kind, Plan, RecordOutcome, Spot
from patcher.planning.replay import Desk, EditFilter, EditResult, Missing, Replayed, predecessors
from patcher.records.load import in_order
from patcher.records.model import Edit, Record, Style
from patcher.rewriting.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Candidate,
    Overlap,
    Rewritten,
    Unparseable,
)


@dataclass(frozen=True, slots=True)
class Request:
    """Which records are wanted. Those that the ledger has stay wanted, whatever is asked for."""

    ids: frozenset[str] = frozenset()
    """Only these, if any."""
    tags: frozenset[str] = frozenset()
    """Records with one of these tags are wanted though they are off by default."""
    enabled: frozenset[str] = frozenset()
    """So are these, by id."""
    disabled: frozenset[str] = frozenset()

    def wants(self, record: Record) -> bool:
        if self.ids:
            return record.id in self.ids
        asked = record.enabled or record.id in self.enabled or bool(self.tags & set(record.tags))
        return asked and record.id not in self.disabled


@dataclass(frozen=True, slots=True)
class Situation:
    """What a plan is made from, besides the records."""

    environment: Environment
    lookup: SymbolLookup
    files: Mapping[str, FileState]
    applied: Mapping[str, Applied]
    word: str = "Uky"
    style: Style = "comment"

    @property
    def verl(self) -> str:
        installed = self.environment.packages.get("verl")
        return installed.version if installed else ""


def plan(records: Sequence[Record], request: Request, situation: Situation) -> Plan:
    """Decide each record's outcome and each file's text. `records` must be ordered (`in_order`)."""
    records = (*records, *_retired(records, situation.applied))
    desk = _desk(situation)
    earlier = predecessors(records)
    outcomes = []
    withdrawn: set[str] = set()
    for record in records:
        known = situation.applied.get(record.id)
        if known is None and not request.wants(record):
            outcomes.append(_left_out(record, request))
            continue
        needed = need(record, situation.environment, situation.lookup)
        if needed.answer == "no" and known is not None:
            withdrawn.update(known.files)
            detail = phrase("applied, and no longer needed ({reason}): apply takes it out", reason=needed.reason)
            outcomes.append(RecordOutcome(record.id, "pending", detail, known.files))
            continue
        if needed.answer == "no" or (needed.answer == "unknown" and known is None):
            outcomes.append(RecordOutcome(record.id, "not-needed", needed.reason, record.files))
            continue
        done = desk.replay(record, belongs(situation.verl), earlier[record.id])
        outcomes.append(_judge(record, done, needed, situation, known))
    plans = {
        file: FilePlan(file, desk.texts[file], tuple(desk.order.get(file, ())))
        for file in dict.fromkeys((*desk.order, *sorted(withdrawn)))
        if file in desk.texts
    }
    titled = [_titled(outcome, record) for outcome, record in zip(outcomes, records, strict=True)]
    return Plan(_settle(titled, plans, situation), plans, tuple(desk.steps))


def plan_revert(ids: frozenset[str], situation: Situation) -> Plan:
    """Take records out: replay what stays, as it was applied, on the pre-images. An empty `ids` means all."""
    from patcher.records.parse import parse

    stays: list[Record] = []
    outcomes = []
    touched: dict[str, None] = {}
    for name, known in situation.applied.items():
        if ids and name not in ids:
            record = parse(known.source, Path(f"{name}.toml"))
            assert isinstance(record, Record), f"the ledger's own copy of {name} does not parse"
            stays.append(record)
        else:
            touched.update(dict.fromkeys(known.files))
            outcomes.append(RecordOutcome(name, "pending", phrase("to be taken out"), known.files))
    stays = list(in_order(stays))
    desk = _desk(situation)
    earlier = predecessors(stays)
    for record in stays:
        known = situation.applied[record.id]
        done = desk.replay(record, belongs(known.verl), earlier[record.id])
        if not done.made or set(done.files) != set(known.files):
            detail = phrase(
                "it builds on {others}: revert them together", others=", ".join(sorted(ids & earlier[record.id] or ids))
            )
            outcomes.append(RecordOutcome(record.id, "conflict", detail, known.files))
    for file in touched:
        state = situation.files[file]
        if state.tampered or state.base is None:
            names = tuple(outcome.id for outcome in outcomes if file in outcome.files)
            outcomes = [_tampered(outcome, file) if outcome.id in names else outcome for outcome in outcomes]
    plans = {
        file: FilePlan(file, desk.texts[file], tuple(desk.order.get(file, ())))
        for file in touched
        if file in desk.texts
    }
    return Plan(tuple(outcomes), plans)


def _titled(outcome: RecordOutcome, record: Record) -> RecordOutcome:
    return replace(outcome, title=record.title, title_zh=record.zh.title if record.zh else "")


def belongs(verl: str) -> EditFilter:
    """Which edits are for this release of verl; an edit without a specifier is for all."""

    def decide(edit: Edit) -> bool | None:
        if edit.verl is None:
            return True
        match satisfies(verl, edit.verl, kind="tree"):
            case No():
                return False
            case Undecided():
                return None
            case _:
                return True

    return decide


def _lies_between(verl: str) -> bool:
    from patcher.environment.versions import is_prerelease

    return is_prerelease(verl)


def _desk(situation: Situation) -> Desk:
    texts = {path: state.base for path, state in situation.files.items() if state.base is not None}
    problems = {path: state.problem for path, state in situation.files.items() if state.problem}
    return Desk.of(texts, problems, situation.word, situation.style)


def _retired(records: Iterable[Record], applied: Mapping[str, Applied]) -> tuple[Record, ...]:
    """Records that the ledger has and no folder has any more, as they were applied."""
    from patcher.records.parse import parse

    known = {record.id for record in records}
    parsed = (parse(entry.source, Path(f"{name}.toml")) for name, entry in applied.items() if name not in known)
    return tuple(record for record in parsed if isinstance(record, Record))


def _left_out(record: Record, request: Request) -> RecordOutcome:
    if request.ids:
        detail = phrase("not asked for")
    elif record.id in request.disabled:
        detail = phrase("disabled in uky-patch.toml")
    else:
        detail = phrase("off by default: uky-patch apply {id}", id=record.id)
    return RecordOutcome(record.id, "not-needed", detail, record.files)


def _judge(record: Record, done: Replayed, needed: Need, situation: Situation, known: Applied | None) -> RecordOutcome:
    tampered = [result for result in done.results if situation.files[result.edit.file].tampered]
    if known is not None and tampered:
        return _tampered(RecordOutcome(record.id, "pending", phrase(""), known.files), tampered[0].edit.file)
    spots = tuple(Spot(result.edit.file, line) for result in done.results if result.settled for line in _lines(result))
    if done.made:
        by_hand = sum(len(result.outcome.by_hand) for result in done.results if isinstance(result.outcome, Rewritten))
        by_hand += sum(isinstance(result.outcome, AlreadyDone) for result in done.results)
        hand = phrase("{count} of its places by hand already", count=by_hand) if by_hand else phrase("")
        note = Phrases((hand, needed.note))
        return RecordOutcome(record.id, "pending", note or needed.reason, done.files, spots, note=note)
    if all(result.settled for result in done.results) and done.results:
        return _by_hand(record, done, situation, spots)
    blamed = [result for result in done.results if not result.settled]
    if not blamed:
        return RecordOutcome(
            record.id, "not-needed", phrase("none of its edits is for verl {verl}", verl=situation.verl), record.files
        )
    if len(blamed) == len(done.results) and all(_excusable(result, needed) for result in blamed):
        detail = phrase(
            "verl {verl} lies between releases, so its files decide: no such place here", verl=situation.verl
        )
        return RecordOutcome(record.id, "not-needed", detail, record.files, nearest=_nearest(blamed))
    return _failure(record, blamed)


def _excusable(result: EditResult, needed: Need) -> bool:
    return isinstance(result.outcome, AnchorMissing | Missing) and (needed.answer == "maybe" or not result.certain)


def _by_hand(record: Record, done: Replayed, situation: Situation, spots: tuple[Spot, ...]) -> RecordOutcome:
    marked = any(isinstance(result.outcome, AlreadyDone) and result.outcome.marked for result in done.results)
    claimed = "verl" in record.when.versions and not _lies_between(situation.verl)
    files = tuple(dict.fromkeys(spot.file for spot in spots))
    if marked:
        return RecordOutcome(record.id, "adopted", phrase("by hand, marked, same effect"), files, spots)
    if not claimed and any(result.resolved for result in done.results):
        return RecordOutcome(record.id, "resolved", phrase("upstream's own fix is here"), files, spots)
    return RecordOutcome(record.id, "adopted", phrase("by hand, same effect"), files, spots)


def _failure(record: Record, blamed: Sequence[EditResult]) -> RecordOutcome:
    worst = min(blamed, key=lambda result: _SEVERITY.index(_kind(result)))
    file, kind = worst.edit.file, _kind(worst)
    nearest = _nearest(blamed)
    match worst.outcome:
        case AnchorMissing(expected, found):
            detail = phrase(
                "{file}: expected {expected} places, found {found}", file=file, expected=expected, found=found
            )
            spots: tuple[Spot, ...] = ()
        case AnchorAmbiguous(expected, lines):
            detail = phrase(
                "{file}: expected {expected} places, found {found} (lines {lines})",
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
        case Unparseable(line, message):
            detail = phrase("{file}:{line}: {message}", file=file, line=line, message=message)
            spots = (Spot(file, line),)
        case Missing():
            detail = phrase("{file} is not in this tree", file=file)
            spots = ()
        case _:
            raise AssertionError(worst)
    return RecordOutcome(record.id, kind, detail, record.files, spots, nearest=nearest)


_SEVERITY: tuple[Kind, ...] = ("unparseable", "missing-file", "conflict", "ambiguous", "drifted")


def _kind(result: EditResult) -> Kind:
    match result.outcome:
        case Missing():
            return "missing-file"
        case AnchorAmbiguous():
            return "ambiguous"
        case Overlap():
            return "conflict"
        case Unparseable():
            return "unparseable"
        case _:
            return "drifted"


def _nearest(blamed: Iterable[EditResult]) -> tuple[tuple[str, Candidate], ...]:
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


def _tampered(outcome: RecordOutcome, file: str) -> RecordOutcome:
    detail = phrase("{file} was changed since the record was applied", file=file)
    return replace(outcome, kind="tampered", detail=detail)


def _settle(
    outcomes: Iterable[RecordOutcome], plans: Mapping[str, FilePlan], situation: Situation
) -> tuple[RecordOutcome, ...]:
    """A planned record that the ledger has, in files that are as planned already, is applied."""

    def stands(outcome: RecordOutcome) -> bool:
        known = situation.applied.get(outcome.id)
        planned = [plans[file] for file in outcome.files if file in plans]
        return (
            known is not None
            and outcome.kind == "pending"
            and set(outcome.files) <= set(known.files)
            and bool(planned)
            and all(outcome.id in file.records for file in planned)
            and _unchanged(outcome.id, planned, situation)
        )

    return tuple(
        RecordOutcome(outcome.id, "applied", outcome.detail, outcome.files, outcome.spots)
        if stands(outcome)
        else outcome
        for outcome in outcomes
    )


def _unchanged(name: str, planned: Iterable[FilePlan], situation: Situation) -> bool:
    for file in planned:
        current = situation.files[file.path].current or ""
        if file.text != current and _own_lines(name, file.text) != _own_lines(name, current):
            return False
    return True


def _own_lines(name: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if f"[{name}]" in line]
