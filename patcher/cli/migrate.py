"""`uky-patch migrate`: the fork running on another machine."""

from __future__ import annotations

from pathlib import Path

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import host_options, ordered_host
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.migrate.order import STEPS, Step, StepName
from patcher.report.answers import show_json
from patcher.session.session import Session


@click.command("migrate", cls=Command)
@click.argument("name", metavar="HOST", shell_complete=host_names)
@host_options
@click.option("--dry-run", is_flag=True, help="Look, plan and show; write nothing, there or here.")
@click.option("--from", "start", type=click.Choice(STEPS), metavar="STEP", help="Begin with this step.")
@click.option("--until", type=click.Choice(STEPS), metavar="STEP", help="End with this step.")
@click.option("--only", type=click.Choice(STEPS), multiple=True, metavar="STEP", help="This step alone.")
@click.option("--yes", is_flag=True, help="Move aside what somebody changed there, and go on.")
@click.option("--share", is_flag=True, help="Start the job though the GPUs are busy.")
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
    **given: str | int | Path | None,
) -> int:
    """Move the fork to HOST: records for its versions, files, paths, checks, and the debug job.

    HOST is a name of [hosts] in uky-patch.toml, or whatever ssh is to be given. The steps are preflight, probe, plan,
    transfer, render, verify, environment and job.
    """
    from patcher.migrate.migration import migrate
    from patcher.migrate.order import MigrationOrder
    from patcher.report.migrate import as_json, listeners, show_end, show_preview, show_step
    from patcher.secrets.redacting import Redactor

    host = ordered_host(session, name, given)
    order = MigrationOrder(host, start, until, only, dry=dry_run, yes=yes, share=share)
    text, redactor = session.output == "text", Redactor(host.secrets.values())
    told, live = listeners()

    def on_step(step: Step) -> None:
        live.end()
        if text:
            show_step(step, redactor)

    done = migrate(session, order, told, on_step)
    if text and dry_run:
        show_preview(done)
    if text:
        show_end(done, dry=dry_run)
    else:
        show_json(as_json(done, redactor))
    difference = done.findings.difference
    would_send = dry_run and done.exit_code == ExitCode.CLEAN and difference is not None and not difference.nothing
    return ExitCode.FINDINGS if would_send else done.exit_code
