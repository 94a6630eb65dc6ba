"""`uky-patch status`: the records against this tree."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session import Session


@click.command("status", cls=Command)
@click.option("--all", "everything", is_flag=True, help="Also the records that are not needed here, with the reason.")
@with_session
def command(session: Session, everything: bool) -> int:
    """Show where each record stands on this tree. Exit code 1 if apply would change something, or could not."""
    from patcher.operations.standing import standing
    from patcher.reporting.status import show_status

    found = standing(session)
    show_status(found, session, everything=everything)
    return ExitCode.CLEAN if found.clean else ExitCode.FINDINGS
