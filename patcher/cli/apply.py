"""`uky-patch apply`: make the edits that are needed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import UsageError
from patcher.language import phrase
from patcher.session import Session

if TYPE_CHECKING:
    from patcher.operations.nodes import Wanted


@click.command("apply", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Also records that are off by default and have this tag."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what changes.")
@click.option("--allow-dirty", is_flag=True, help="Touch files with uncommitted changes too.")
@click.option("--merge", is_flag=True, help="Take over what people changed in patched files since.")
@click.option("--commit", is_flag=True, help="Commit what was written, one commit a record.")
@click.option(
    "--ray", "address", metavar="ADDRESS", help="On every node of a Ray cluster: HOST:PORT, ray://HOST:PORT, auto."
)
@click.option("--wait", type=click.FloatRange(min=1), metavar="SECONDS", help="With --ray: how long a node may take.")
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
    address: str | None,
    wait: float | None,
) -> int:
    """Apply the records that are needed here: all of them or none. With IDs, only these."""
    if address is None and wait is not None:
        raise UsageError(phrase("--wait goes with --ray"))
    if address is not None:
        if diff or commit:
            raise UsageError(phrase("--diff and --commit are for one tree; with --ray there may be many"))
        from patcher.operations.nodes import Wanted

        return _on_nodes(session, address, Wanted(ids, tags, allow_dirty, merge), dry_run=dry_run, wait=wait)
    from patcher.operations.applying import Order, apply, preview
    from patcher.reporting.round import show_round

    order = Order(session.request(ids, tags), allow_dirty=allow_dirty, commit=commit, merge=merge)
    done = preview(session, order) if dry_run else apply(session, order)
    return show_round(done, session, verb="apply", diff=diff)


def _on_nodes(session: Session, address: str, wanted: Wanted, *, dry_run: bool, wait: float | None) -> int:
    from patcher.operations.nodes import apply_nodes
    from patcher.reporting.nodes import Progress, show_applied

    with Progress() as progress:
        done = apply_nodes(session, address, wanted, dry_run=dry_run, wait=wait, on_node=progress.take)
    return show_applied(done, address, session.output, dry_run=dry_run)
