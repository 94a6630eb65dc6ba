"""`uky-patch data`: what a data set holds, and a tiny copy of it."""

from __future__ import annotations

import click

from patcher.cli.help import CommandGroup
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.group("data", cls=CommandGroup)
def command() -> None:
    """Look at data sets here or on a host. A relative FILE is, on a host, one in its data folder."""


@command.command("report")
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--host", metavar="HOST", help="There; without it, on this machine.")
@with_session
def report(session: Session, file: str | None, host: str | None) -> int:
    """Rows, columns and the first row of FILE, by default the train.parquet of the data folder."""
    from patcher.assets.data_and_models import report_data
    from patcher.report.assets import data_report
    from patcher.terminal.document import print_report

    print_report(data_report(report_data(session, host, file), session))
    return ExitCode.CLEAN


@command.command("tiny")
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--host", metavar="HOST", help="There; without it, on this machine.")
@click.option(
    "--rows", type=click.IntRange(1, 100_000), metavar="N", default=2, show_default=True, help="How many rows."
)
@click.option(
    "--to", metavar="NAME", help="The file to write, beside FILE; by default train_tiny.parquet for train.parquet."
)
@click.option("--force", is_flag=True, help="Replace a file that was not made so.")
@with_session
def tiny(session: Session, file: str | None, host: str | None, rows: int, to: str | None, force: bool) -> int:
    """Write the first rows of FILE as a data set of their own, which the debug run takes where it is there."""
    from patcher.assets.data_and_models import write_tiny_data
    from patcher.report.assets import tiny_data_report
    from patcher.terminal.document import print_report

    print_report(tiny_data_report(write_tiny_data(session, host, file, rows, to, force=force), session))
    return ExitCode.CLEAN
