"""`uky-patch adopt`: edits made by hand come under the ledger."""

from __future__ import annotations

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session


@click.command("adopt", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option("--all", "every", is_flag=True, help="Every record that status shows as adopted.")
@click.option(
    "--from",
    "base",
    metavar="BASE",
    help="What the files were before: a commit, verl==VERSION, or upstream. Without it: HEAD where the edits are in "
    "no commit, else upstream.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what would change, and write nothing; exit code as of --dry-run.")
@with_session
def command(session: Session, ids: tuple[str, ...], every: bool, base: str | None, dry_run: bool, diff: bool) -> int:
    """Take over edits that a hand has made and a record describes: revert, verify and migrate then treat them as ours.

    Each file stays what it is but for markers, and gets a pre-image.
    """
    from patcher.recording.adopting import adopt
    from patcher.report.apply_result import adopted_report, apply_exit_code
    from patcher.terminal.document import print_report

    if every == bool(ids):
        raise UsageError(
            phrase("it is not said what is to be adopted"),
            advice=phrase("Name records, as status shows them, or say --all: one of the two."),
        )
    dry_run = dry_run or diff
    found = adopt(session, ids, base, dry_run=dry_run)
    print_report(adopted_report(found, session, diff=diff, dry_run=dry_run))
    code = apply_exit_code(found.done, dry_run=dry_run)
    return ExitCode.FINDINGS if code == ExitCode.CLEAN and found.refused else code
