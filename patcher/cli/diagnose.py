"""`uky-patch diagnose`: why a run failed, or where it stands still, from its log."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.session import Session


@click.command("diagnose", cls=Command)
@click.argument("log", metavar="LOG")
@click.option("--against", metavar="GOOD_LOG", help="A good run's log: what it said that this one never came to.")
@with_session
def command(session: Session, /, log: str, against: str | None) -> int:
    """Phases reached, verdict, root symptom and cascade, and the fix.

    LOG is a file, packed or not, a folder such as that of a Ray session, or - for standard input.
    """
    from patcher.operations.diagnosing import diagnose
    from patcher.reporting.diagnose import show_diagnosis

    found = diagnose(session, log, against)
    show_diagnosis(found, session.output, log)
    return 0 if found.clean else 1
