"""`uky-patch pins`: what other versions would mean for the fork."""

from __future__ import annotations

from pathlib import Path

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("pins", cls=Command)
@click.argument("file", required=False, type=GivenPath(), metavar="[FILE]")
@click.option("--to", multiple=True, metavar="NAME==VER", help="A proposed version; counts before what FILE says.")
@click.option("--since", is_flag=True, help="Find the first release that shows each finding.")
@with_session
def command(session: Session, file: Path | None, to: tuple[str, ...], since: bool) -> int:
    """Compare the fork's versions with those in FILE: requirements, a freeze list, pyproject.toml, uv.lock, [pins].

    Exit code 0 only if nothing breaks once the records are applied, and no record drifts.
    """
    from patcher.check.pinning import compare
    from patcher.report.pins import pins_report
    from patcher.terminal.document import print_report

    done = compare(session, file, to, since=since)
    print_report(pins_report(done, session))
    return ExitCode.CLEAN if done.clean else ExitCode.FINDINGS
