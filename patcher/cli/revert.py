"""`uky-patch revert`: take edits out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.session import Session

if TYPE_CHECKING:
    from patcher.operations.survey import Tampering


@click.command("revert", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what changes.")
@click.option(
    "--force",
    is_flag=True,
    help="Put pre-images back though a file was changed since; the changed file is kept beside.",
)
@click.option("--merge", is_flag=True, help="Leave in what people changed in patched files since.")
@with_session
def command(session: Session, ids: tuple[str, ...], dry_run: bool, diff: bool, force: bool, merge: bool) -> int:
    """Put files back as they were, byte for byte: of all records, or of the IDs named."""
    from patcher.operations.reverting import revert
    from patcher.reporting.round import show_round

    if force and merge:
        raise click.UsageError("--force and --merge exclude each other")
    tampering: Tampering = "restore" if force else "merge" if merge else "refuse"
    done = revert(session, frozenset(ids), dry_run=dry_run, tampering=tampering)
    return show_round(done, session, verb="revert", diff=diff)
