"""`uky-patch list`: the records."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session
from patcher.terminal.answers import show_json


@click.command("list", cls=Command)
@with_session
def command(session: Session) -> int:
    """List the records, what each is for and whether it is on by default."""
    from patcher.i18n import language
    from patcher.report.records import record_json, record_rows
    from patcher.terminal.document import Table, print_report

    records = session.records_anywhere
    if session.output == "json":
        show_json({"records": [record_json(record) for record in records]})
    else:
        print_report([Table(record_rows(records, language()), indent=0)])
    return ExitCode.CLEAN
