"""`uky-patch revert`: take edits out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.session.snapshot import Tampering


@click.command("revert", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what would change, and write nothing; exit code as of --dry-run.")
@click.option("--show-diff", is_flag=True, help="Show what changes, and write it.")
@click.option(
    "--force",
    is_flag=True,
    help="Put pre-images back though a file was changed since: it loses what was changed by hand. A copy is kept. "
    "A file of another release or commit stays as it is where the two cannot be told apart, and is forgotten.",
)
@click.option(
    "--merge",
    is_flag=True,
    help="Leave in what people changed in patched files since; forget files that are gone.",
)
@with_session
def command(
    session: Session, ids: tuple[str, ...], dry_run: bool, diff: bool, show_diff: bool, force: bool, merge: bool
) -> int:
    """Put files back as they were, byte for byte: of all records, or of the IDs named."""
    from patcher.patching.reverting import revert
    from patcher.report.apply_result import apply_exit_code, apply_report
    from patcher.terminal.document import print_report

    if force and merge:
        raise click.UsageError("--force and --merge exclude each other")
    if diff and show_diff:
        raise UsageError(phrase("--diff writes nothing, and --show-diff writes: give one of them"))
    dry_run = dry_run or diff
    tampering: Tampering = "restore" if force else "merge" if merge else "refuse"
    done = revert(session, frozenset(ids), dry_run=dry_run, tampering=tampering)
    print_report(apply_report(done, session, verb="revert", diff=diff or show_diff, dry_run=dry_run, ids=ids))
    return apply_exit_code(done, dry_run=dry_run)
