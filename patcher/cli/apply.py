"""`uky-patch apply`: make the edits that are needed here."""

from __future__ import annotations

import click

from patcher.cli.completing import record_ids
from patcher.cli.options import with_session
from patcher.session import Session


@click.command("apply")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Also records that are off by default and have this tag."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what changes.")
@click.option("--allow-dirty", is_flag=True, help="Touch files with uncommitted changes too.")
@click.option("--merge", is_flag=True, help="Take over what people changed in patched files since.")
@click.option("--commit", is_flag=True, help="Commit what was written, one commit a record.")
@with_session
def command(
    session: Session,
    ids: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    diff: bool,
    allow_dirty: bool,
    merge: bool,
    commit: bool,
) -> int:
    """Apply the records that are needed here: all of them or none. With IDs, only these."""
    from patcher.operations.applying import Order, apply, preview
    from patcher.reporting.round import show_round

    order = Order(session.request(ids, tags), allow_dirty=allow_dirty, commit=commit, merge=merge)
    done = preview(session, order) if dry_run else apply(session, order)
    return show_round(done, session, verb="apply", diff=diff)
