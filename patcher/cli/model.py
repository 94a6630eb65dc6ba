"""`uky-patch model`: the newest model, and its weights read into memory ahead."""

from __future__ import annotations

import click

from patcher.cli.help import CommandGroup
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.group("model", cls=CommandGroup)
def command() -> None:
    """Find models here or on a host. FOLDER is a model, a Hugging Face cache, or a folder of models."""


@command.command("newest")
@click.argument("folder", required=False, metavar="[FOLDER]")
@click.option("--host", metavar="HOST", help="There; without it, on this machine.")
@with_session
def newest(session: Session, folder: str | None, host: str | None) -> int:
    """Print the newest model: the snapshot that refs/main names, else the latest by modification time."""
    from patcher.assets.data_and_models import find_newest_model
    from patcher.report.assets import model_report
    from patcher.terminal.document import print_report

    print_report(model_report(find_newest_model(session, host, folder), session))
    return ExitCode.CLEAN


@command.command("warm")
@click.argument("folder", required=False, metavar="[FOLDER]")
@click.option("--host", metavar="HOST", help="There; without it, on this machine.")
@with_session
def warm(session: Session, folder: str | None, host: str | None) -> int:
    """Read the newest model's weights into the page cache, in parallel, so that the next load is fast."""
    from patcher.assets.data_and_models import warm_model
    from patcher.i18n import phrase
    from patcher.report.assets import warm_report
    from patcher.terminal.document import print_report
    from patcher.terminal.progress import progress

    reading = phrase("reading the weights")
    done = warm_model(session, host, folder, lambda read, total: progress(reading, read, total))
    print_report(warm_report(done, session))
    return ExitCode.FINDINGS if done["skipped"] or done["failed"] else ExitCode.CLEAN
