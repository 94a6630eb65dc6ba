"""`uky-patch rebase`: the fork's records onto another verl."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("rebase", cls=Command)
@click.argument("target", metavar="VERL")
@click.option("--branch", metavar="NAME", default="", help="The branch that is made. Default: uky-patch/verl-VERSION.")
@click.option(
    "--from",
    "base",
    metavar="BASE",
    default="",
    help="The verl that the fork is of: VERSION or a commit. Default: found.",
)
@click.option("--dry-run", is_flag=True, help="Make no branch; exit code 1 if a record would not carry over.")
@with_session
def command(session: Session, target: str, branch: str, base: str, dry_run: bool) -> int:
    """Put the fork's own records onto another verl: a branch with that verl, the fork's files, and a commit a record.

    VERL is a version, whose tag counts before the release, or a commit. The working copy is not touched.
    """
    from patcher.recording.rebasing import rebase
    from patcher.report.recording import rebase_report
    from patcher.terminal.document import print_report

    found = rebase(session, target, base, branch, dry_run=dry_run)
    print_report(rebase_report(found, session))
    return ExitCode.FINDINGS if any(one.fate == "drifted" for one in found.records) else ExitCode.CLEAN
