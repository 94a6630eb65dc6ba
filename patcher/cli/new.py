"""`uky-patch new`: a record to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session


@click.command("new", cls=Command)
@click.argument("record_id", metavar="ID")
@click.option("--at", "place", metavar="FILE:LINE", required=True, help="The statement that the record is about.")
@click.option("--into", metavar="DIR", type=GivenPath(file_okay=False), help="The folder for the record.")
@click.option("--dry-run", is_flag=True, help="Print the record, and write nothing.")
@with_session
def command(session: Session, record_id: str, place: str, into: Path | None, dry_run: bool) -> int:
    """Write a record that is to be finished: the anchor and the example are those of a place in the tree.

    It is off until `enabled = false` is taken out. For an edit that is made already, record writes the whole record.
    """
    from patcher.cli.record import below_root
    from patcher.recording.saving import folder_for, save_text
    from patcher.recording.skeleton import skeleton
    from patcher.records.rules import is_id
    from patcher.report.recording import new_report
    from patcher.terminal.document import print_report

    try:
        is_id(record_id)
    except ValueError as error:
        raise UsageError(phrase("{id!r} is no id of a record", id=record_id), cause=error.args[0]) from None
    if record_id in {record.id for record in session.records}:
        raise UsageError(
            phrase("there is a record {id} already", id=record_id),
            advice=phrase("See it with: uky-patch explain {id}", id=record_id),
        )
    folder = folder_for(session, into)
    file, colon, line = place.rpartition(":")
    found = skeleton(session, record_id, f"{below_root(session, file)}:{line}" if colon else place)
    saved = None if dry_run else save_text(session, {record_id: found.text}, folder)
    print_report(new_report(record_id, found, session, saved))
    return ExitCode.CLEAN
