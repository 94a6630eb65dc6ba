"""`uky-patch explain ID`: one record, and why it does or does not apply here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode
from patcher.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patcher.plan.outcome import Plan
    from patcher.session.snapshot import TreeSnapshot


@click.command("explain", cls=Command)
@click.argument("record_id", metavar="ID", shell_complete=record_ids)
@click.option(
    "--try", "file", metavar="FILE", type=GivenPath(dir_okay=False), help="Show what the record would do to this file."
)
@with_session
def command(session: Session, record_id: str, file: Path | None) -> int:
    """Say what a record does and why, where it stands on this tree, and show its change or the nearest candidate.

    With --try, its edits are made on a file of any tree, whatever the versions; nothing is written.
    """
    if file is not None:
        return _try(session, record_id, file)
    from patcher.check.planning import plan_on_tree
    from patcher.plan.inputs import Request
    from patcher.plan.outcome import SETTLED
    from patcher.report.records import explanation_report
    from patcher.session.snapshot import read_snapshot, record_file_names
    from patcher.session.tree_access import read_consistently
    from patcher.terminal.document import print_report

    record, names = session.record(record_id), record_file_names(session)
    found = read_consistently(session.tree, lambda reading: read_snapshot(session, reading.ledger, names))
    planned = plan_on_tree(session, Request(ids=frozenset({record.id})), found.situation)
    outcome = next(outcome for outcome in planned.outcomes if outcome.id == record.id)
    print_report(explanation_report(record, outcome, _own_changes(record.id, planned, found), session))
    return ExitCode.CLEAN if outcome.kind in SETTLED else ExitCode.FINDINGS


def _try(session: Session, record_id: str, file: Path) -> int:
    from patcher.recording.trial import try_on
    from patcher.report.records import trial_report
    from patcher.rewrite.outcome import AlreadyDone, Rewritten
    from patcher.terminal.document import print_report

    record = session.record(record_id)
    found = try_on(record, file, word=session.config.marker, style=session.config.style)
    print_report(trial_report(record, found, session))
    if not all(isinstance(outcome, Rewritten | AlreadyDone) for _, outcome in found.edits):
        return ExitCode.NOT_APPLIED
    return ExitCode.FINDINGS if found.before != found.after else ExitCode.CLEAN


def _own_changes(name: str, planned: Plan, found: TreeSnapshot) -> Iterator[tuple[str, str, str]]:
    """Each file that the record changes, before and after this record alone."""
    texts = {path: state.base for path, state in found.situation.files.items() if state.base is not None}
    for step, files in planned.steps:
        if step == name:
            yield from ((path, texts[path], after) for path, after in files.items())
        texts.update(files)
