"""What a plan changes, record by record, where other records stand in the files already: for one commit a record.

`Plan.steps` begins with the files without any record, so that its first texts lack what is applied. Here the texts
begin with what is there: the records to be taken out go first, then the others come in or change one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from patcher.plan.inputs import PlanInputs, Request, belongs, workspace_of
from patcher.plan.outcome import Plan
from patcher.plan.planning import wanted_records
from patcher.plan.replay import predecessors
from patcher.records.load import as_applied
from patcher.records.model import Record


@dataclass(frozen=True, slots=True)
class Stage:
    """The files' texts once `records` are made and `taken_out` are out; what comes later is not yet in them."""

    records: tuple[Record, ...]
    taken_out: tuple[str, ...]
    texts: Mapping[str, str | None]
    """Of the files that these records edit or have edited. None: the file is not there."""


def stages(records: Sequence[Record], request: Request, plan: Plan, inputs: PlanInputs) -> Iterator[Stage]:
    """From the files as they are to the files as planned. `records`, `request` and `inputs` are those of the plan."""
    made = {name: tuple(texts) for name, texts in plan.steps}
    ordered = [record for record in wanted_records(records, request, inputs.applied) if record.id in made]
    changed = {outcome.id for outcome in plan.pending}
    coming = [record for record in ordered if record.id in changed]
    known = {name: applied.files for name, applied in inputs.applied.items()}
    gone = tuple(name for name in known if name not in made)
    done = 0
    for number in range(0 if gone else 1, len(coming) + 1):
        later = {record.id for record in coming[number:]}
        found = _texts(ordered, later, inputs) if later else plan.texts
        if found is None:  # A record that stays does not hold here without the next one: the two come together.
            continue
        names = (*(record.id for record in coming[done:number]), *gone)
        files = {path for name in names for path in (*known.get(name, ()), *made.get(name, ()))} & plan.files.keys()
        yield Stage(tuple(coming[done:number]), gone, {path: found.get(path) for path in sorted(files)})
        done, gone = number, ()


def _texts(ordered: Sequence[Record], later: Collection[str], inputs: PlanInputs) -> Mapping[str, str] | None:
    """The texts with those of `later` as they were applied, if they were; None where one of the records fails."""
    decide = belongs(inputs.verl)
    now = []
    for record in ordered:
        known = inputs.applied.get(record.id)
        if record.id not in later:
            now.append((record, decide))
        elif known is not None:
            now.append((as_applied(record.id, known.source), belongs(known.verl)))
    workspace = workspace_of(inputs)
    earlier = predecessors([record for record, _ in now])
    made = [workspace.replay(record, which, earlier[record.id]).made for record, which in now]
    return workspace.texts if all(made) else None
