"""`uky-patch explain ID`: one record, and why it does or does not apply here."""

from __future__ import annotations

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.session.session import Session


@click.command("explain", cls=Command)
@click.argument("record_id", metavar="ID", shell_complete=record_ids)
@with_session
def command(session: Session, record_id: str) -> int:
    """Say what a record does and why, where it stands on this tree, and show its change or the nearest candidate."""
    from patcher.report.explain import show_explanation

    return show_explanation(session, session.record(record_id))
