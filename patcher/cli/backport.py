"""`uky-patch backport`: a fix of upstream verl as records for this older tree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.cli.record import asked, is_asked, writing_options
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("backport", cls=Command)
@click.argument("commits", nargs=-1, required=True, metavar="COMMIT...")
@click.option(
    "--upstream",
    metavar="CLONE",
    type=GivenPath(file_okay=False),
    help="A clone of verl that has the commit. Default: this tree's own checkout.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="PKG==VERSION",
    help="A release that check is asked about. Default: the vLLM that this tree runs on.",
)
@writing_options
@with_session
def command(
    session: Session,
    commits: tuple[str, ...],
    upstream: Path | None,
    against: tuple[str, ...],
    into: Path | None,
    dry_run: bool,
    diff: bool,
    yes: bool,
) -> int:
    """Make a record of a fix of upstream verl, for this older tree. What does not carry over is told.

    Each change of a commit, or of a range A..B as a whole, is carried to the place that it has here; of several, one
    after the other, into one record. It is proven as `record` proves one. Changes with which check finds more are left
    out.
    """
    from patcher.recording.backporting import backport
    from patcher.recording.saving import folder_for, save
    from patcher.report.recording import backport_report
    from patcher.terminal.document import print_report

    dry_run = dry_run or diff
    folder = folder_for(session, into)
    found = backport(session, commits, upstream, against)
    if not dry_run and not yes and found.proposal.records and is_asked(session):
        found = replace(found, proposal=asked(session, found.proposal))
    records = found.proposal.records
    saved = save(session, records, folder) if records and not dry_run else None
    print_report(backport_report(found, session, saved, diff=diff))
    return ExitCode.FINDINGS if dry_run and records else ExitCode.CLEAN
