"""Records, versions and sources -> Plan, for an apply and for a revert. Pure: nothing is read or written.

status, verify, a dry run and apply all start from the same plan. It begins with the files as they are without any
record (the pre-images): what is applied already is made once more, and comes out the same, or as the record is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from patcher.i18n import Phrase, Phrases, phrase
from patcher.plan.applicability import Applicability, applicability
from patcher.plan.inputs import PlanInputs, Request, belongs, workspace_of
from patcher.plan.judging import outcome_of, places, tampered_outcome
from patcher.plan.outcome import FAILED, Applied, FilePlan, FileState, Plan, RecordOutcome, Spot
from patcher.plan.replay import Missing, Workspace, on_other, predecessors
from patcher.records.load import as_applied, in_order
from patcher.records.model import Record
from patcher.worktree.hashing import digest_of


def plan_apply(records: Sequence[Record], request: Request, inputs: PlanInputs) -> Plan:
    """Decide each record's outcome and each file's text. `records` must be ordered (`in_order`).

    Every wanted record is replayed on the files' texts without any record, so that a second apply plans the same, a
    changed record replaces its own older edits, and one that is no longer needed goes out by not being replayed.
    """
    records = wanted_records(records, request, inputs.applied)
    workspace = workspace_of(inputs)
    earlier = predecessors(records)
    outcomes = []
    withdrawn: set[str] = set()
    for record in records:
        known = inputs.applied.get(record.id)
        asked_by_id = record.id in request.ids
        if known is None and not request.wants(record):
            outcomes.append(_left_out(record, request, inputs))
            continue
        needed = applicability(record, inputs.environment, inputs.lookup, inputs.newest)
        concerned = record.id not in request.skipped and (asked_by_id or not request.ids)
        leaves = _out_of_place(record, request, needed) if concerned else None
        changed = next((file for file in known.files if inputs.files[file].tampered), None) if known else None
        if known is not None and leaves is not None:
            detail = phrase("{reason}; apply takes it out", reason=leaves)
            outcome = RecordOutcome(record.id, "pending", detail, known.files)
            if changed is None:
                withdrawn.update(known.files)
            outcomes.append(outcome if changed is None else tampered_outcome(outcome, inputs.files[changed], inputs))
            continue
        if known is None and needed.answer in ("no", "unknown"):
            outcomes.append(RecordOutcome(record.id, "not-needed", needed.reason, record.files))
            continue
        done = workspace.replay(record, belongs(inputs.verl), earlier[record.id])
        # Of records asked for by a tag, some may be about parts of verl that this fork has dropped: no failure.
        if not record.enabled and not asked_by_id and all(isinstance(r.outcome, Missing) for r in done.results):
            detail = phrase("{file} is not in this tree", file=record.files[0])
            outcomes.append(RecordOutcome(record.id, "not-needed", detail, record.files))
            continue
        if known is not None and changed is not None and not concerned:
            detail = phrase("left as it is: {file} was changed since", file=changed)
            outcomes.append(RecordOutcome(record.id, "not-needed", detail, known.files, skipped=True))
            continue
        outcome = outcome_of(record, done, needed, inputs, known)
        skipped = [one.id for one in outcomes if one.skipped and one.id in earlier[record.id]]
        outcomes.append(_after_skipped(outcome, skipped) if skipped else outcome)
    plans = _file_plans(workspace, (*workspace.order, *sorted(withdrawn)), inputs)
    titled = [_titled(outcome, record) for outcome, record in zip(outcomes, records, strict=True)]
    return Plan(_settle(titled, plans, inputs), plans, _steps(workspace, plans))


def plan_revert(ids: frozenset[str], inputs: PlanInputs) -> Plan:
    """Take records out: replay what stays, as it was applied, on the pre-images. An empty `ids` means all."""
    stays: list[Record] = []
    outcomes = []
    touched: dict[str, None] = {}
    for name, known in inputs.applied.items():
        if ids and name not in ids:
            stays.append(as_applied(name, known.source))
        else:
            touched.update(dict.fromkeys(known.files))
            outcomes.append(RecordOutcome(name, "pending", phrase("to be taken out"), known.files))
    stays = list(in_order(stays))
    workspace = workspace_of(inputs)
    earlier = predecessors(stays)
    for record in stays:
        known = inputs.applied[record.id]
        done = workspace.replay(record, belongs(known.verl), earlier[record.id])
        if not done.made or set(done.files) != set(known.files):
            detail = phrase(
                "it builds on {others}: revert them together", others=", ".join(sorted(ids & earlier[record.id] or ids))
            )
            outcomes.append(RecordOutcome(record.id, "conflict", detail, known.files))
    for file in touched:
        state = inputs.files[file]
        if state.tampered or state.problem is not None:
            names = tuple(outcome.id for outcome in outcomes if file in outcome.files)
            outcomes = [
                tampered_outcome(outcome, state, inputs) if outcome.id in names else outcome for outcome in outcomes
            ]
    plans = _file_plans(workspace, touched, inputs)
    return Plan(tuple(outcomes), plans)


def _file_plans(workspace: Workspace, files: Iterable[str], inputs: PlanInputs) -> dict[str, FilePlan]:
    """What the workspace has made of some files; nothing of those that cannot be read, or are not to be written."""
    return {
        file: _in_layout(
            FilePlan(file, workspace.texts.get(file), tuple(workspace.order.get(file, ()))), inputs.files[file], inputs
        )
        for file in dict.fromkeys(files)
        if file not in workspace.problems and not inputs.files[file].tampered
    }


def _in_layout(planned: FilePlan, state: FileState, inputs: PlanInputs) -> FilePlan:
    """The plan in the layout of the file that is there, where that is not the records' own.

    Else a fork that a formatter goes over would be laid out to and fro."""
    text = planned.text
    if not state.made or not planned.records or text is None or state.current is None:
        return planned
    made = digest_of(text.encode())
    if made == state.made:
        text = state.current
    elif planned.path.endswith(".py") and "\r" not in text:
        from patcher.rewrite.layout import relaid

        text = relaid(state.current, text, but=inputs.word).text
    return planned if text == planned.text else replace(planned, text=text, made=made)


def _steps(workspace: Workspace, plans: Mapping[str, FilePlan]) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The workspace's steps, of which the last for each file has the text that is planned."""
    last = {file: name for name, texts in workspace.steps for file in texts}

    def text(name: str, file: str, made: str) -> str:
        plan = plans.get(file)
        return plan.text if plan is not None and plan.text is not None and last[file] == name else made

    return tuple(
        (name, {file: text(name, file, made) for file, made in texts.items()}) for name, texts in workspace.steps
    )


def _titled(outcome: RecordOutcome, record: Record) -> RecordOutcome:
    return replace(outcome, title=record.title, title_zh=record.zh.title if record.zh else "")


def wanted_records(records: Sequence[Record], request: Request, applied: Mapping[str, Applied]) -> tuple[Record, ...]:
    """The records as they count here: where some are left out, those that are applied stay as they were applied.

    So do those that the ledger has and no folder has any more.
    """
    known = {record.id for record in records}

    def stays(record: Record) -> bool:
        left = record.id in request.skipped or (bool(request.ids) and record.id not in request.ids)
        return record.id in applied and left

    current = (as_applied(record.id, applied[record.id].source) if stays(record) else record for record in records)
    return (*current, *(as_applied(name, entry.source) for name, entry in applied.items() if name not in known))


def _out_of_place(record: Record, request: Request, needed: Applicability) -> Phrase | None:
    """Why an applied record is to be taken out."""
    if record.id in request.disabled:
        return phrase("disabled in uky-patch.toml")
    return phrase("no longer needed: {reason}", reason=needed.reason) if needed.answer == "no" else None


def _left_out(record: Record, request: Request, inputs: PlanInputs) -> RecordOutcome:
    if record.id in request.skipped:
        reason = phrase("skipped with --skip")
    elif request.ids:
        return RecordOutcome(record.id, "not-needed", phrase("not asked for"), record.files)
    elif record.id in request.disabled:
        reason = phrase("disabled in uky-patch.toml")
    else:
        detail = phrase("off by default: uky-patch apply {id}", id=record.id)
        return RecordOutcome(record.id, "not-needed", detail, record.files)
    called_for = applicability(record, inputs.environment, inputs.lookup, inputs.newest).answer in ("yes", "maybe")
    return RecordOutcome(record.id, "not-needed", reason, record.files, skipped=called_for)


def _after_skipped(outcome: RecordOutcome, names: Sequence[str]) -> RecordOutcome:
    """The outcome of a record that is made to come after others, which are left out here."""
    text = phrase("it comes after {names}, which is skipped", names=", ".join(names))
    if outcome.kind == "pending":
        return replace(outcome, note=Phrases((outcome.note, text)) if outcome.note else text)
    return replace(outcome, detail=Phrases((outcome.detail, text))) if outcome.kind in FAILED else outcome


def _settle(
    outcomes: Iterable[RecordOutcome], plans: Mapping[str, FilePlan], inputs: PlanInputs
) -> tuple[RecordOutcome, ...]:
    """A planned record that the ledger has, in files that are as planned already, is applied."""

    def stands(outcome: RecordOutcome) -> bool:
        known = inputs.applied.get(outcome.id)
        planned = [plans[file] for file in outcome.files if file in plans]
        return (
            known is not None
            and outcome.kind == "pending"
            and set(outcome.files) <= set(known.files)
            and bool(planned)
            and all(outcome.id in file.records for file in planned)
            and _unchanged(outcome.id, planned, inputs)
        )

    return tuple(_placed(outcome, stands(outcome), plans, inputs) for outcome in outcomes)


def _placed(outcome: RecordOutcome, applied: bool, plans: Mapping[str, FilePlan], inputs: PlanInputs) -> RecordOutcome:
    """The outcome with its places: of a pending record, the lines that it will change; of an applied one, its lines."""
    if outcome.kind != "pending":
        return outcome
    since = tuple(file for file in outcome.files if inputs.files[file].since)
    spots = marked_spots(outcome, plans, inputs.word)
    if not applied:
        texts = {path: inputs.files[path].current or "" for path in plans}
        spots = tuple(Spot(s.file, on_other(s.line, plans[s.file].text or "", texts[s.file])) for s in spots)
    return replace(outcome, kind="applied" if applied else "pending", spots=spots or outcome.spots, since=since)


def marked_spots(outcome: RecordOutcome, plans: Mapping[str, FilePlan], word: str) -> tuple[Spot, ...]:
    """The lines of the planned texts that carry a record's marker, old lines left out."""
    return tuple(
        Spot(file, number)
        for file in outcome.files
        if file in plans
        for number, line in own_lines(outcome.id, plans[file].text or "", word)
        if not line.lstrip().startswith("#")
    )


def hand_made_spots(record: Record, texts: Mapping[str, str], verl: str, word: str) -> tuple[Spot, ...]:
    """Where a record that was made by hand stands in the texts; nowhere if it does not hold there by itself."""
    workspace = Workspace({file: texts[file] for file in record.files if file in texts}, word, "comment")
    done = workspace.replay(record, belongs(verl))
    return () if done.made else places(done)


def _unchanged(name: str, planned: Iterable[FilePlan], inputs: PlanInputs) -> bool:
    """Whether the record's lines are in the files as they are in the plan, wherever others have moved them.

    Of a file that it has made itself, and no other record has changed, all lines are the record's.
    """

    def lines(text: str) -> list[str]:
        return [line for _, line in own_lines(name, text, inputs.word)]

    def same(file: FilePlan) -> bool:
        state, text = inputs.files[file.path], file.text or ""
        whole = state.current is None or (state.base is None and file.records == (name,))
        current = state.current or ""
        return file.text == state.current or (not whole and lines(text) == lines(current))

    return all(map(same, planned))


def own_lines(name: str, text: str, word: str) -> list[tuple[int, str]]:
    """The lines that carry the record's marker, alone or beside another's, with their numbers."""
    from patcher.rewrite.marker import line_markers

    numbered = enumerate(text.splitlines(), start=1)
    return [(number, line) for number, line in numbered if name in line and name in line_markers(line, word)]
