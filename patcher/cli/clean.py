"""`uky-patch clean`: what a job has left behind."""

from __future__ import annotations

from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options, ordered_host
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.remote.host import HERE
from patcher.session.session import Session


@click.command("clean", cls=Command)
@click.argument("host", metavar="[HOST]", default=HERE, shell_complete=host_names)
@click.option("--job", metavar="ID", help="Which job, by its id or an end of it; the newest by default.")
@near_options
@click.option("--caches", is_flag=True, help="Also caches of compilers and stale locks that lie in the tree.")
@click.option("--running", is_flag=True, help="Also a job that is at work: it is stopped first.")
@click.option("--grace", type=click.FloatRange(min=0), default=20.0, metavar="S", help="Seconds to end by itself.")
@click.option("--yes", is_flag=True, help="Take it away without asking.")
@click.option("--dry-run", is_flag=True, help="List it, and take nothing away. Exit code 1 if there is anything.")
@with_session
def command(
    session: Session,
    /,
    host: str,
    job: str | None,
    caches: bool,
    running: bool,
    grace: float,
    yes: bool,
    dry_run: bool,
    **given: Any,
) -> int:
    """Take away what a job has left: its processes, shared memory, sockets and sessions of Ray, and nobody else's.

    HOST is this machine without a name. All is listed first, with the reason why it is thought to be the job's; what
    others hold and stands in the way is shown and left alone.
    """
    from patcher.cli.confirm import confirmed
    from patcher.i18n import phrase
    from patcher.jobs.cleaning import Cleaned, list_leftovers, take_away
    from patcher.remote.link import linked
    from patcher.report.clean import cleaned_report, leftovers_report
    from patcher.report.jobs import stopping_report
    from patcher.terminal.document import print_report

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        found = list_leftovers(link.open()[0], job, caches=caches, running=running)
        if session.output == "text":
            print_report(leftovers_report(found))
        done = Cleaned()
        question = phrase("Take away {count} {count:thing|things} of job {id}?", count=len(found.things), id=found.job)
        if found.things and not dry_run and confirmed(question, yes=yes):
            options: dict[str, Any] = {"caches": caches, "running": running, "grace": grace}
            done = take_away(
                link.open()[0], found, on_list=lambda found: print_report(stopping_report(found)), **options
            )
    print_report(cleaned_report(machine, found, done, session.output, dry=dry_run))
    return ExitCode.CLEAN if len(done.done) == len(found.things) else ExitCode.FINDINGS
