"""`uky-patch prune`: kept copies and old jobs."""

from __future__ import annotations

import time
from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options, ordered_host
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.remote.host import HERE
from patcher.session.session import Session

_DAY = 86400.0


@click.command("prune", cls=Command)
@click.argument("host", metavar="[HOST]", default=HERE, shell_complete=host_names)
@near_options
@click.option("--keep", type=click.IntRange(min=0), default=3, metavar="N", help="Leave the newest N of each; 3.")
@click.option("--days", type=click.FloatRange(min=0), default=0.0, metavar="D", help="Leave what is not D days old.")
@click.option("--yes", is_flag=True, help="Remove it without asking.")
@click.option("--dry-run", is_flag=True, help="List it, and remove nothing. Exit code 1 if there is anything.")
@with_session
def command(session: Session, /, host: str, keep: int, days: float, yes: bool, dry_run: bool, **given: Any) -> int:
    """Remove old copies in .uky-patch-kept and the folders of jobs that have ended, here or on HOST.

    A copy is what a migration, a merge or a newer file has replaced. A job that is at work is never removed, nor are
    checkpoints: they are in the output folder. All is listed first.
    """
    from patcher.cli.confirm import confirmed
    from patcher.i18n import phrase
    from patcher.migrate.pruning import Pruned, prune, superfluous
    from patcher.remote.link import linked
    from patcher.report.clean import pruned_report, stored_report
    from patcher.terminal.document import print_report

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        things = superfluous(link.open()[0], keep, time.time() - days * _DAY)
        if session.output == "text":
            print_report(stored_report(things))
        done = Pruned()
        question = phrase("Remove {count} {count:thing|things} for good?", count=len(things))
        if things and not dry_run and confirmed(question, yes=yes):
            link.connect()
            link.open_folder()
            with link.locked("prune"):
                done = prune(link.connection, things)
    print_report(pruned_report(machine, things, done, session.output, dry=dry_run))
    return ExitCode.CLEAN if len(done.removed) == len(things) else ExitCode.FINDINGS
