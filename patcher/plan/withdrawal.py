"""The plan of a revert: what stays is replayed, as it was applied, on the pre-images."""

from __future__ import annotations

from patcher.i18n import phrase
from patcher.plan.judging import tampered_outcome
from patcher.plan.outcome import FilePlan, Plan, RecordOutcome
from patcher.plan.replay import predecessors
from patcher.plan.situation import Situation, belongs, desk_of
from patcher.records.load import as_applied, in_order
from patcher.records.model import Record


def plan_revert(ids: frozenset[str], situation: Situation) -> Plan:
    """Take records out: replay what stays, as it was applied, on the pre-images. An empty `ids` means all."""
    stays: list[Record] = []
    outcomes = []
    touched: dict[str, None] = {}
    for name, known in situation.applied.items():
        if ids and name not in ids:
            stays.append(as_applied(name, known.source))
        else:
            touched.update(dict.fromkeys(known.files))
            outcomes.append(RecordOutcome(name, "pending", phrase("to be taken out"), known.files))
    stays = list(in_order(stays))
    desk = desk_of(situation)
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
        if state.tampered or state.problem is not None:
            names = tuple(outcome.id for outcome in outcomes if file in outcome.files)
            outcomes = [tampered_outcome(outcome, file) if outcome.id in names else outcome for outcome in outcomes]
    plans = {
        file: FilePlan(file, desk.texts[file], tuple(desk.order.get(file, ())))
        for file in touched
        if file in desk.texts
    }
    return Plan(tuple(outcomes), plans)
