"""`uky-patch verify`: prove that the edits hold, and that what they are for works."""

from __future__ import annotations

from typing import Any

import click

from patcher.checks import LEVELS, Level
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session import Session


@click.command("verify")
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
@with_session
def command(
    session: Session, level: Level, name: str | None, data: str | None, model: str | None, budget: float | None
) -> int:
    """Check that every record that is needed here holds: its lines, its markers, the hashes of its files.

    With --level also that what is installed works, in the interpreter that trains, here or on a host.
    """
    from patcher.reporting.checks import Report

    host = _host(session, name) if name or level != "markers" else None
    report = Report(session, level, host)
    if host is None:
        from patcher.operations.verifying import marker_checks

        checks = marker_checks(session)
        for check in checks:
            report.take(check)
    else:
        from patcher.ladder import Wish
        from patcher.operations.climbing import climb_to

        checks = climb_to(session, level, host, Wish(data, model, budget), report.take)
    report.end(checks)
    return ExitCode.FINDINGS if any(check.status == "fail" for check in checks) else ExitCode.CLEAN


def _host(session: Session, name: str | None) -> Any:
    """The host of that name; without one this machine, with the tree and the interpreter of the session."""
    from patcher.hosts.host import HERE
    from patcher.hosts.parse import host_named

    given: dict[str, Any] = {"python": str(session.python.expanduser().absolute())} if session.python else {}
    if name is None or name == HERE:
        python = session.environment.python
        given = {"path": str(session.tree.root), "python": str(python) if python else None}
    return host_named(session.config, name or HERE, **given)
