"""`uky-patch verify`: prove that the edits hold."""

from __future__ import annotations

import click

from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session import Session


@click.command("verify")
@click.option(
    "--level",
    type=click.Choice(["markers"]),
    default="markers",
    help="How far to go. markers: the edits, their markers and hashes.",
)
@with_session
def command(session: Session, level: str) -> int:
    """Check that every record that is needed here holds: its lines, its markers, the hashes of its files."""
    from patcher.operations.verifying import LEVELS
    from patcher.reporting.checks import show_checks

    checks = LEVELS[level](session)
    show_checks(checks, session)
    return ExitCode.FINDINGS if any(check.status == "fail" for check in checks) else ExitCode.CLEAN
