"""`uky-patch bundle`: one archive for a bug report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("bundle", cls=Command)
@click.argument("what", metavar="[LOG|HOST]", required=False, shell_complete=host_names)
@click.option("--job", metavar="ID", help="Which job of HOST, by its id or an end of it; the newest by default.")
@near_options
@click.option("--output", "file", type=GivenPath(), metavar="FILE", help="Where to; nothing is overwritten.")
@click.option("--script", type=GivenPath(), metavar="FILE", help="A script that reproduces it.")
@click.option("--command", "ran", metavar="TEXT", help="The whole command, where neither the job nor the log tells it.")
@click.option("--tried", multiple=True, metavar="TEXT", help="What was tried already; as often as needed.")
@click.option("--whole-log", is_flag=True, help="Also the whole log, not its end and the lines that tell alone.")
@click.option("--keep-names", is_flag=True, help="Leave the names of users and machines, and addresses, as they are.")
@click.option("--yes", is_flag=True, help="Write it without asking.")
@click.option("--dry-run", is_flag=True, help="List what would be in it, and write nothing.")
@with_session
def command(
    session: Session,
    /,
    what: str | None,
    job: str | None,
    file: Path | None,
    script: Path | None,
    ran: str | None,
    tried: tuple[str, ...],
    whole_log: bool,
    keep_names: bool,
    yes: bool,
    dry_run: bool,
    **given: Any,
) -> int:
    """Pack what a bug report needs: LOG, or the newest job of HOST, which may be "here".

    In it are a report with the seven points that are asked for, the log's end and its telling lines, the diagnosis,
    versions, GPUs, Ray, records, and environment variables by a closed list. Secrets are taken out, and the names of
    users and machines replaced. All is listed before anything is written.
    """
    from patcher.bundle import archive
    from patcher.bundle.collecting import collected, target
    from patcher.bundle.contents import BundleOptions
    from patcher.bundle.sealing import cannot_be_put_together, sealed
    from patcher.cli.confirm import confirmed
    from patcher.diagnose.log_argument import explain_unknown_host
    from patcher.i18n import phrase
    from patcher.report.bundle import bundle_listing, bundle_report, report_sections
    from patcher.terminal.document import print_report

    subject = target(session, what, job, given)
    assert subject.host is not None
    options = BundleOptions(subject.log, job, script, ran, tried, whole_log, keep_names)
    top, path = archive.place(file)
    with (
        explain_unknown_host(session, subject, "uky-patch bundle"),
        cannot_be_put_together(path),
        collected(session, subject.host, options) as run,
        sealed(run, options, *report_sections(run, session)) as bundle,
    ):
        if session.output == "text":
            print_report(bundle_listing(bundle))
        write = not dry_run and confirmed(phrase("Write {path}?", path=path), yes=yes)
        size = archive.write(path, top, bundle.files) if write else None
        print_report(bundle_report(bundle, top, path, size, session.output, dry=dry_run))
    return ExitCode.CLEAN if write else ExitCode.FINDINGS
