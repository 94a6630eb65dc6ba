"""`uky-patch check`: what a release no longer offers that the tree uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session import Session

if TYPE_CHECKING:
    from patcher.reporting.check import By


@click.command("check")
@click.option("--verl", default="", metavar="VER", help="Check this verl release instead of a tree.")
@click.option(
    "--against",
    multiple=True,
    required=True,
    metavar="NAME==VER",
    help="The release in question; NAME=FOLDER for sources, NAME alone for what is installed, NAME==none for absent.",
)
@click.option("--baseline", multiple=True, metavar="NAME==VER", help="A release that the tree is known to work with.")
@click.option("--since/--no-since", default=True, help="Find the first release that shows each finding.")
@click.option("--by", type=click.Choice(["file", "cause"]), default="file", help="Group by file, or by what changed.")
@click.option("--all", "everything", is_flag=True, help="Also what is guarded, and what cannot be decided.")
@click.option("--sarif", type=click.Path(path_type=Path), metavar="FILE", help="Write SARIF 2.1.0 for code hosts too.")
@with_session
def command(
    session: Session,
    verl: str,
    against: tuple[str, ...],
    baseline: tuple[str, ...],
    since: bool,
    by: By,
    everything: bool,
    sarif: Path | None,
) -> int:
    """Find every place where the tree uses something that a release no longer offers in that form."""
    from patcher.operations.checking import Order, check
    from patcher.operations.targets import parse_all
    from patcher.reporting.check import show_check

    done = check(session, Order(parse_all(against), verl, parse_all(baseline), since))
    if sarif is not None:
        from patcher.reporting.sarif import write_sarif

        write_sarif(done, sarif)
    show_check(done, by=by, everything=everything)
    return ExitCode.CLEAN if done.clean else ExitCode.FINDINGS
