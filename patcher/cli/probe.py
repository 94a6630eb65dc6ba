"""`uky-patch probe`: look into a live process that runs with probing; change it only on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patcher.watch.probe.probe import Write


@click.command("probe", cls=Command)
@click.argument("question", metavar="[WHAT]", required=False)
@click.argument("argument", metavar="[VALUE]", required=False)
@click.option(
    "--pid",
    "pids",
    type=click.IntRange(min=1),
    metavar="PID",
    multiple=True,
    help="A process on this machine; repeatable.",
)
@click.option(
    "--target", "targets", metavar="HOST:PORT", multiple=True, help="Where a job's probing listens; repeatable."
)
@click.option(
    "--write",
    "writes",
    is_flag=True,
    help="WHAT changes the process: the command names the risk and asks for confirmation.",
)
@click.option("--yes", is_flag=True, help="Agree to the risk.")
@with_session
def command(
    session: Session,
    /,
    question: str | None,
    argument: str | None,
    pids: tuple[int, ...],
    targets: tuple[str, ...],
    writes: bool,
    yes: bool,
) -> int:
    """Ask a live process for WHAT; without it, list what can be asked and what can be done."""
    from patcher.errors import ExitCode, UsageError
    from patcher.i18n import phrase
    from patcher.remote.host import parse_target
    from patcher.report.probe import answers_report, questions_report
    from patcher.terminal.document import print_report
    from patcher.watch.probe.probe import read, write

    if question is None:
        print_report(questions_report(session.output))
        return ExitCode.CLEAN
    for one in targets:
        if parse_target(one).port is None:
            raise UsageError(phrase("--target {text!r} names no port", text=one), advice="Write it as HOST:PORT.")
    named = (*map(str, pids), *targets)
    if not named:
        raise UsageError(phrase("no process is named"), advice=phrase("Name one with --pid PID or --target HOST:PORT."))
    if writes:
        answers = write(question, named, session.python, argument, lambda action: yes or _confirm(action, named))
    else:
        answers = read(question, named, session.python, argument)
    if answers is None:
        return ExitCode.FINDINGS
    print_report(answers_report(question, answers, session.output))
    return ExitCode.WORLD if any(answer.error for answer in answers) else ExitCode.CLEAN


def _confirm(action: Write, targets: Sequence[str]) -> bool:
    """Say what would be done and its risk, and ask."""
    from patcher.cli.confirm import confirmed
    from patcher.i18n import phrase
    from patcher.report.probe import risk_report
    from patcher.terminal.document import Lines, print_report

    print_report(risk_report(action, targets))
    if confirmed(phrase("Do it?")):
        return True
    print_report([Lines(phrase("Nothing was done. To agree beforehand: --yes"), err=True)])
    return False
