"""`uky-patch check`: what a release no longer offers that the tree uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, Once, with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.report.check import By


@click.command("check", cls=Command)
@click.option("--verl", cls=Once, multiple=True, metavar="VER", help="Check this verl release instead of a tree.")
@click.option(
    "--against",
    multiple=True,
    metavar="NAME==VER",
    help="The release in question (default: what is installed); NAME=FOLDER for sources, NAME alone for what is "
    "installed, NAME==none for absent.",
)
@click.option(
    "--baseline",
    multiple=True,
    metavar="NAME==VER",
    help="A release that the tree works with: what it shows already is left out.",
)
@click.option(
    "--scripts",
    multiple=True,
    metavar="GLOB",
    help="Check run scripts and settings too: examples, or 'examples/**/*.sh'.",
)
@click.option("--no-since", is_flag=True, help="Do not look for the first release that shows each finding.")
@click.option("--by", type=click.Choice(["file", "cause"]), default="file", help="Group by file, or by what changed.")
@click.option("--all", "everything", is_flag=True, help="Also what is guarded, and what cannot be decided.")
@click.option("--draft", type=GivenPath(), metavar="DIR", help="Draft records for the rest in DIR.")
@click.option("--sarif", type=GivenPath(), metavar="FILE", help="Write SARIF 2.1.0 for code hosts too.")
@click.option("--matrix", is_flag=True, help="Every verl release on every release: --verl and --against take ranges.")
@click.option(
    "--html",
    type=GivenPath(dir_okay=False),
    metavar="FILE",
    help="Write a page too: of this tree, or with --matrix of all pairs.",
)
@with_session
def command(
    session: Session,
    verl: str,
    against: tuple[str, ...],
    baseline: tuple[str, ...],
    scripts: tuple[str, ...],
    no_since: bool,
    by: By,
    everything: bool,
    draft: Path | None,
    sarif: Path | None,
    matrix: bool,
    html: Path | None,
) -> int:
    """Find every place where the tree uses something that a release no longer offers in that form."""
    from patcher.terminal.report_file import page_file, sarif_file, write_whole

    if verl and session.root_option is not None and not matrix:
        raise UsageError(
            phrase("--verl {verl} checks that release, and not the tree that --root names", verl=verl),
            advice=phrase("Leave one of the two out."),
        )
    place, sarif = page_file(html), sarif_file(sarif)
    if matrix:
        if baseline or scripts or no_since or everything or draft or sarif:
            raise click.UsageError("--matrix takes --verl, --against and --html; the other options are for one tree")
        return _matrix(session, verl, against, place)
    from patcher.check.checking import check
    from patcher.check.result import CheckRequest
    from patcher.check.targets import parse_all
    from patcher.report.check import check_report
    from patcher.terminal.document import print_report
    from patcher.terminal.printing import terminal_columns

    order = CheckRequest(parse_all(against), verl, parse_all(baseline), not no_since, scripts, draft)
    done = check(session, order)
    page = None
    try:
        if sarif is not None:
            from patcher.report.sarif import sarif_text

            write_whole(sarif, sarif_text(done))
        if place is not None:
            from datetime import date

            from patcher.report.check_page import check_page

            write_whole(place, check_page(done, session, order, place, date=date.today().isoformat()))
            page = place
    finally:
        # A full disk takes a file, and not what was found.
        print_report(
            check_report(done, by=by, everything=everything, of_tree=not verl, page=page, columns=terminal_columns())
        )
    if done.drafted is not None and done.drafted.files.failed is not None:
        raise done.drafted.files.failed
    return ExitCode.CLEAN if done.clean else ExitCode.FINDINGS


def _matrix(session: Session, verl: str, against: tuple[str, ...], place: Path | None) -> int:
    from patcher.check.matrix_run import MatrixRequest, survey_releases
    from patcher.report.matrix import matrix_report
    from patcher.terminal.document import print_report
    from patcher.terminal.progress import progress

    order = MatrixRequest(verl, against)
    found = survey_releases(session, order, progress)
    page = None
    try:
        if place is not None:
            from datetime import date

            from patcher.report.matrix_page import matrix_page
            from patcher.terminal.report_file import write_whole

            today = date.today().isoformat()
            write_whole(place, matrix_page(found, session.records_anywhere, command=order.command, date=today))
            page = place
    finally:
        print_report(matrix_report(found, session, page=page))
    return ExitCode.FINDINGS if any(cell.left for cell in found.cells.values()) else ExitCode.CLEAN
