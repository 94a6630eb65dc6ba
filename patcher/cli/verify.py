"""`uky-patch verify`: prove that the edits hold, and that what they are for works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from patcher.checks import LEVELS, Level
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode, UsageError
from patcher.homes import expanded
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patcher.checks import Check
    from patcher.patching.next_step import NextStep
    from patcher.preflight.preflight import PreflightOptions


@click.command("verify", cls=Command)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="markers",
    help="How far to go, each level with those below it. markers: the edits, their markers and hashes; env: torch, "
    "vLLM, verl, Ray; data: the rows; model: weights, tokenizer; engine: vLLM starts; job: the run script.",
)
@click.option("--host", "name", metavar="HOST", help="There and not here: a name of [hosts], or what ssh is given.")
@click.option("--data", metavar="FILE", help="The data file on that machine, or its folder.")
@click.option("--model", metavar="FOLDER", help="The model's folder on that machine, or one that holds models.")
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="For each level above the markers, in place of 10 (env), 10 (data), 30 (model), 120 (engine).",
)
@click.option(
    "--ray", "address", metavar="ADDRESS", help="Every node of a Ray cluster: HOST:PORT, ray://HOST:PORT, auto."
)
@click.option("--wait", type=click.FloatRange(min=1), metavar="SECONDS", help="With --ray: how long a node may take.")
@with_session
def command(
    session: Session,
    level: Level,
    name: str | None,
    data: str | None,
    model: str | None,
    budget: float | None,
    address: str | None,
    wait: float | None,
) -> int:
    """Check that every record that is needed here holds: its lines, its markers, the hashes of its files.

    With --level also that what is installed works, in the interpreter that trains, here or on a host.
    """
    from patcher.preflight.preflight import PreflightOptions

    if address is None and wait is not None:
        raise UsageError(phrase("--wait goes with --ray"))
    if address is not None:
        if name is not None:
            raise UsageError(phrase("--host and --ray do not go together"))
        return _on_nodes(session, address, level, PreflightOptions(data, model, budget), wait)
    from patcher.report.checks import ChecksReport
    from patcher.terminal.document import print_report

    host = _host(session, name) if name is not None or level != "markers" else None
    report = ChecksReport(session, level, host)
    print_report(report.begin())
    if host is None:
        from patcher.patching.verifying import checks_here

        checks = checks_here(session)
        for check in checks:
            print_report(report.take(check))
    else:
        from patcher.migrate.verify import verify_host

        checks = verify_host(
            session, level, host, PreflightOptions(data, model, budget), lambda check: print_report(report.take(check))
        )
    step = _next_step(session, checks) if host is None or host.here else None
    print_report(report.end(checks, step))
    return ExitCode.FINDINGS if any(check.status == "fail" for check in checks) else ExitCode.CLEAN


def _host(session: Session, name: str | None) -> Any:
    """The host of that name; without one this machine."""
    from patcher.remote.host import HERE
    from patcher.session.hosts import find_host, this_machine

    if name is None or name == HERE:
        return this_machine(session)
    given: dict[str, Any] = {"python": str(expanded(session.python).absolute())} if session.python else {}
    return find_host(session.config, name, **given)


def _on_nodes(session: Session, address: str, level: Level, wish: PreflightOptions, wait: float | None) -> int:
    from patcher.cli.nodes import node_progress
    from patcher.cluster.nodes import verify_nodes
    from patcher.report.nodes import verified_exit_code, verified_report
    from patcher.terminal.document import print_report

    with node_progress() as show_answer:
        nodes = verify_nodes(session, address, level, wish, wait=wait, on_node=show_answer)
    print_report(verified_report(nodes, address, session.output))
    return verified_exit_code(nodes, address)


def _next_step(session: Session, checks: Sequence[Check]) -> NextStep | None:
    """What to do about the edits in this tree, where they do not hold."""
    from patcher.patching.next_step import after_status
    from patcher.patching.status import records_status

    if any(check.level == "markers" and check.status == "fail" for check in checks):
        return after_status(session, records_status(session))
    return None
