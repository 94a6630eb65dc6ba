"""One record, explained against one tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.errors import ExitCode
from patcher.i18n import Language, language, phrase, show
from patcher.plan.inputs import Request
from patcher.plan.outcome import FAILED, SETTLED
from patcher.plan.planning import plan_apply
from patcher.report.answers import show_json
from patcher.report.commands import command_line
from patcher.report.diffs import show_diff, unified
from patcher.report.header import header
from patcher.report.outcomes import as_json, label
from patcher.report.records import conditions, record_json, text_of
from patcher.session.snapshot import read_snapshot, record_file_names
from patcher.session.tree_access import read_consistently
from patcher.terminal.printing import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patcher.plan.outcome import Plan, RecordOutcome
    from patcher.records.model import Record
    from patcher.session.session import Session
    from patcher.session.snapshot import TreeSnapshot


def show_explanation(session: Session, record: Record) -> int:
    """Print it and give the exit code: 0 where nothing is to be done, else 1."""
    names = record_file_names(session)
    found = read_consistently(session.tree, lambda reading: read_snapshot(session, reading.ledger, names))
    planned = plan_apply(session.records, Request(ids=frozenset({record.id})), found.situation)
    outcome = next(outcome for outcome in planned.outcomes if outcome.id == record.id)
    code = ExitCode.CLEAN if outcome.kind in SETTLED else ExitCode.FINDINGS
    if session.output == "json":
        nearest = [{"file": file, "line": near.line, "text": near.text} for file, near in outcome.nearest]
        show_json({**record_json(record), **as_json(outcome), "nearest": nearest})
        return code
    tongue = language()
    say(*_about(record, tongue), "", *_here(outcome, session, tongue))
    for path, before, after in _own_change(record.id, planned, found):
        say("")
        show_diff(unified(path, before, after))
    if outcome.kind == "pending":
        say("", show(phrase("Next: {command}", command=command_line(session, "apply", record.id)), tongue))
    return code


def _own_change(name: str, planned: Plan, found: TreeSnapshot) -> Iterator[tuple[str, str, str]]:
    """Each file that the record changes, before and after this record alone."""
    texts = {path: state.base for path, state in found.situation.files.items() if state.base is not None}
    for step, files in planned.steps:
        if step == name:
            yield from ((path, texts[path], after) for path, after in files.items())
        texts.update(files)


def _about(record: Record, tongue: Language) -> list[str]:
    text = text_of(record, tongue)
    lines = [f"{record.id}: {text.title}", f"  {text.reason}"]
    lines.append(f"  {show('for', tongue)}: {conditions(record.when, tongue)}")
    lines.append(f"  {show('edits', tongue)}: " + ", ".join(record.files))
    if record.upstream:
        lines.append(f"  {show('upstream', tongue)}: {record.upstream}")
    if record.path is not None:
        lines.append(f"  {show('record', tongue)}: {record.path}")
    return lines


def _here(outcome: RecordOutcome, session: Session, tongue: Language) -> list[str]:
    lines = [header(session, tongue), f"  {label(outcome.kind, tongue)}: {show(outcome.detail, tongue)}"]
    lines += [f"  {spot.file}:{spot.line}" for spot in outcome.spots]
    lines += [f"  {show('nearest', tongue)}: {file}:{near.line}: {near.text}" for file, near in outcome.nearest]
    if outcome.kind in ("drifted", "ambiguous"):
        advice = "Upstream may have fixed this: if so, narrow [when]; otherwise update the edit."
        lines.append(f"  {show(advice, tongue)}")
    if outcome.kind in FAILED and outcome.kind != "tampered":
        without = command_line(session, "apply", "--skip", outcome.id)
        lines.append(f"  {phrase('Without it: {command}', command=without).render(tongue)}")
        for_good = command_line(session, "apply", "--skip", outcome.id, "--remember")
        lines.append(f"  {phrase('Without it from now on: {command}', command=for_good).render(tongue)}")
    return lines
