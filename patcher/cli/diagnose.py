"""`uky-patch diagnose`: why a run failed, or where it stands still, from its log."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patcher.diagnose.diagnosis import Diagnosis


@click.command("diagnose", cls=Command)
@click.argument("target", metavar="LOG|HOST", shell_complete=host_names)
@click.option("--against", metavar="GOOD_LOG", help="A good run's log: which of its lines this run never reached.")
@click.option("--job", metavar="ID", help="Which job of HOST, by its id or an end of it; the newest by default.")
@click.option("--whole-log", is_flag=True, help="Fetch all of a long log of HOST, whatever its size.")
@click.option("--html", type=GivenPath(dir_okay=False), metavar="FILE", help="Write a page too, to be sent on.")
@near_options
@with_session
def command(
    session: Session,
    /,
    target: str,
    against: str | None,
    job: str | None,
    whole_log: bool,
    html: Path | None,
    **given: Any,
) -> int:
    """Phases reached, verdict, root symptom and cascade, and the fix.

    LOG is a file, packed or not, a folder such as that of a Ray session, of which the newest run counts, or - for
    standard input. HOST has a job of this tree, "here" included: its log is fetched.
    """
    from patcher.diagnose.diagnose import diagnose
    from patcher.diagnose.log_argument import explain_unknown_host, log_or_host
    from patcher.jobs.job_log import diagnose_job
    from patcher.report.diagnose import diagnosis_report
    from patcher.report.jobs import job_json
    from patcher.terminal.document import print_report
    from patcher.terminal.printing import terminal_columns
    from patcher.terminal.progress import progress
    from patcher.terminal.report_file import page_file

    place = page_file(html)
    subject = log_or_host(session, target, given, "uky-patch diagnose")
    if subject.host is None:
        if job is not None:
            raise UsageError(phrase("--job names a job of a host, and a log was given"))
        found = diagnose(session, target, against, progress)
        write_page(place, found, target, ["diagnose", target], logs=found.logs or [target])
        print_report(diagnosis_report(found, session.output, target, columns=terminal_columns()))
        return ExitCode.CLEAN if found.clean else ExitCode.FINDINGS
    with explain_unknown_host(session, subject, "uky-patch diagnose"):
        of_job = diagnose_job(session, subject.host, job, against, whole=whole_log)
    found = of_job.diagnosis
    logs = [of_job.job.log] if subject.host.here else ()
    write_page(place, found, target, ["diagnose", target], logs=logs)
    job_fields = {"host": subject.host.name, **job_json(of_job.job)}
    print_report(diagnosis_report(found, session.output, target, job_fields, columns=terminal_columns()))
    return ExitCode.CLEAN if found.clean else ExitCode.FINDINGS


def write_page(
    place: Path | None,
    found: Diagnosis,
    log: str,
    words: Sequence[str],
    stacks: Sequence[Mapping[str, Any]] = (),
    *,
    logs: Sequence[str] = (),
) -> None:
    """Write the page of a run, where one was asked for.

    Args:
        words: the command that made it, without --html.
        logs: files of the run here. A secret that they show beside its name is hidden on the page wherever it stands.
    """
    if place is None:
        return
    from datetime import date

    from patcher.bundle.sealing import recognised_in_log
    from patcher.secrets.redacting import learn

    for name in logs:
        if Path(name).is_file():
            learn(recognised_in_log(Path(name)))
    from patcher.report.run_page import run_page
    from patcher.terminal.report_file import write_whole

    command_line, today = shlex.join(["uky-patch", *words, "--html", str(place)]), date.today().isoformat()
    write_whole(place, run_page(found, log=log, command=command_line, date=today, stacks=stacks))
