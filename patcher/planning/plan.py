"""Records, versions and sources -> Plan. Pure: status, verify, a dry run and apply all start from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from patcher.language import phrase
from patcher.planning.judging import judge
from patcher.planning.lines import on_other
from patcher.planning.need import need
from patcher.planning.outcome import Applied, FilePlan, Plan, RecordOutcome, Spot
from patcher.planning.replay import Missing, predecessors
from patcher.planning.situation import Request, Situation, belongs, desk_of
from patcher.records.model import Record


def plan(records: Sequence[Record], request: Request, situation: Situation) -> Plan:
    """Decide each record's outcome and each file's text. `records` must be ordered (`in_order`)."""
    records = (*records, *_retired(records, situation.applied))
    desk = desk_of(situation)
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
        asked_by_id = record.id in request.ids
        if not record.enabled and not asked_by_id and all(isinstance(r.outcome, Missing) for r in done.results):
            detail = phrase("{file} is not in this tree", file=record.files[0])
            outcomes.append(RecordOutcome(record.id, "not-needed", detail, record.files))
            continue
        outcomes.append(judge(record, done, needed, situation, known))
    plans = {
        file: FilePlan(file, desk.texts[file], tuple(desk.order.get(file, ())))
        for file in dict.fromkeys((*desk.order, *sorted(withdrawn)))
        if file in desk.texts
    }
    titled = [_titled(outcome, record) for outcome, record in zip(outcomes, records, strict=True)]
    return Plan(_settle(titled, plans, situation), plans, tuple(desk.steps))


def _titled(outcome: RecordOutcome, record: Record) -> RecordOutcome:
    return replace(outcome, title=record.title, title_zh=record.zh.title if record.zh else "")


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

    return tuple(_placed(outcome, stands(outcome), plans, situation) for outcome in outcomes)


def _placed(
    outcome: RecordOutcome, applied: bool, plans: Mapping[str, FilePlan], situation: Situation
) -> RecordOutcome:
    """The outcome with its places: of a pending record, the lines that it will change; of an applied one, its lines."""
    if outcome.kind != "pending":
        return outcome
    spots = marked_spots(outcome, plans)
    if not applied:
        texts = {path: situation.files[path].current or "" for path in plans}
        spots = tuple(Spot(s.file, on_other(s.line, plans[s.file].text, texts[s.file])) for s in spots)
    return replace(outcome, kind="applied" if applied else "pending", spots=spots or outcome.spots)


def marked_spots(outcome: RecordOutcome, plans: Mapping[str, FilePlan]) -> tuple[Spot, ...]:
    """The lines of the planned texts that carry a record's marker, old lines left out."""
    return tuple(
        Spot(file, number)
        for file in outcome.files
        if file in plans
        for number, line in enumerate(plans[file].text.splitlines(), start=1)
        if f"[{outcome.id}]" in line and not line.lstrip().startswith("#")
    )


def _unchanged(name: str, planned: Iterable[FilePlan], situation: Situation) -> bool:
    for file in planned:
        current = situation.files[file.path].current or ""
        if file.text != current and _own_lines(name, file.text) != _own_lines(name, current):
            return False
    return True


def _own_lines(name: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if f"[{name}]" in line]
