"""`uky-patch status`: the records against this tree."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("status", cls=Command)
@click.option("--all", "everything", is_flag=True, help="Also the records that are not needed here, with the reason.")
@with_session
def command(session: Session, everything: bool) -> int:
    """Show where each record stands on this tree. Exit code 1 if apply would change something, or could not.

    Also where it is not known which environment trains, and where check finds what no record was made for.
    """
    from patcher.check.untried import untried
    from patcher.patching.status import records_status
    from patcher.report.status import status_report
    from patcher.terminal.document import print_report

    found, beyond = records_status(session), untried(session)
    print_report(status_report(found, beyond, session, everything=everything))
    clean = found.clean and session.environment.known and (beyond is None or beyond.clean)
    return ExitCode.CLEAN if clean else ExitCode.FINDINGS
