"""`uky-patch migrate`: the fork running on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patcher.cli.completing import host_names
from patcher.cli.confirm import confirmed
from patcher.cli.help import Command
from patcher.cli.hosts import host_options, ordered_host
from patcher.cli.options import with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import language, phrase, show
from patcher.migrate.order import STEPS, Step, StepName
from patcher.session.session import Session
from patcher.terminal.printing import say
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from patcher.checks import Check
    from patcher.errors import UkyError
    from patcher.migrate.order import MigrationOrder
    from patcher.remote.link import HostLink


@click.command("migrate", cls=Command)
@click.argument("name", metavar="HOST", shell_complete=host_names)
@host_options
@click.option("--dry-run", is_flag=True, help="Look, plan and show; write nothing, there or here.")
@click.option("--from", "start", type=click.Choice(STEPS), metavar="STEP", help="Begin with this step.")
@click.option("--until", type=click.Choice(STEPS), metavar="STEP", help="End with this step.")
@click.option("--only", type=click.Choice(STEPS), multiple=True, metavar="STEP", help="This step alone.")
@click.option("--yes", is_flag=True, help="Move aside what somebody changed there, and go on.")
@click.option("--share", is_flag=True, help="Start the job though the GPUs are busy.")
@click.option("--force", is_flag=True, help="Start the job though no GPU is visible there.")
@with_session
def command(
    session: Session,
    /,
    name: str,
    dry_run: bool,
    start: StepName | None,
    until: StepName | None,
    only: tuple[StepName, ...],
    yes: bool,
    share: bool,
    force: bool,
    **given: str | int | Path | None,
) -> int:
    """Move the fork to HOST: records for its versions, files, paths, checks, and the debug job.

    HOST is a name of [hosts] in uky-patch.toml, or whatever ssh is to be given. The steps are preflight, probe, plan,
    transfer, render, verify, environment and job.
    """
    from patcher.migrate.order import MigrationOrder
    from patcher.remote.link import linked

    if only and (start or until):
        raise UsageError(phrase("--only names all the steps: it goes without --from and --until"))
    if start and until and STEPS.index(start) > STEPS.index(until):
        raise UsageError(
            phrase("--from {start} begins behind --until {until}", start=start, until=until),
            advice=phrase("The order of the steps is: {steps}", steps=", ".join(STEPS)),
        )
    host = ordered_host(session, name, given)
    order = MigrationOrder(host, start, until, only, dry=dry_run, yes=yes, share=share, force=force)
    with linked(host, session.tree.root, None if dry_run else "migrate") as link:
        if not host.here:
            link.begin()
        # What follows is loaded while ssh logs in.
        return _migrated(session, order, link)


def _migrated(session: Session, order: MigrationOrder, link: HostLink) -> int:
    """Migrate, tell each step and what it came to. Returns the exit code."""
    from patcher.migrate.migration import migrate
    from patcher.migrate.steps import Listeners
    from patcher.report.migrate import as_json, migration_end, preview_report, step_report
    from patcher.secrets.redacting import Redactor
    from patcher.terminal.answers import show_json
    from patcher.terminal.document import print_report
    from patcher.terminal.live import Live

    text, redactor = session.output == "text", Redactor(order.host.secrets.values())
    live = Live()
    listeners = Listeners(progress, _show_check, live.milestone, live.time, _show_retry, live.problem, confirmed)

    def on_step(step: Step) -> None:
        live.end()
        if text:
            progress("")
            print_report(step_report(step, redactor))

    done = migrate(session, order, listeners, on_step, link)
    if text and order.dry:
        print_report(preview_report(done))
    if text:
        print_report(migration_end(done, dry=order.dry))
    else:
        show_json(as_json(done, redactor))
    difference = done.findings.difference
    would_send = order.dry and done.exit_code == ExitCode.CLEAN and difference is not None and not difference.nothing
    return ExitCode.FINDINGS if would_send else done.exit_code


def _show_check(check: Check) -> None:
    progress(phrase("{name}: {status}", name=check.name, status=show(check.status, language())))


def _show_retry(error: UkyError, seconds: float) -> None:
    text = phrase("{title}; trying again in {seconds} s", title=error.title, seconds=f"{seconds:.0f}")
    progress("")
    say(text, err=True)
