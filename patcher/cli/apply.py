"""`uky-patch apply`: make the edits that are needed here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from patcher.cli.completing import record_ids
from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.cluster.planning import Wanted


@click.command("apply", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=record_ids)
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Also records that are off by default and have this tag."
)
@click.option(
    "--skip", multiple=True, metavar="ID", shell_complete=record_ids, help="Leave this record out; may be repeated."
)
@click.option("--remember", is_flag=True, help="Leave out what is skipped from now on: noted in uky-patch.toml.")
@click.option("--dry-run", is_flag=True, help="Write nothing; exit code 1 if something would change.")
@click.option("--diff", is_flag=True, help="Show what would change, and write nothing; exit code as of --dry-run.")
@click.option("--show-diff", is_flag=True, help="Show what changes, and write it.")
@click.option("--allow-dirty", is_flag=True, help="Touch files with uncommitted changes too.")
@click.option(
    "--merge",
    is_flag=True,
    help="Take over what people changed in patched files since; forget files that are gone.",
)
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
    skip: tuple[str, ...],
    remember: bool,
    dry_run: bool,
    diff: bool,
    show_diff: bool,
    allow_dirty: bool,
    merge: bool,
    commit: bool,
    address: str | None,
    wait: float | None,
) -> int:
    """Apply the records that are needed here: all of them or none. With IDs, only these."""
    if diff and show_diff:
        raise UsageError(phrase("--diff writes nothing, and --show-diff writes: give one of them"))
    if remember and not skip:
        raise UsageError(phrase("--remember goes with --skip"))
    if twice := sorted(set(ids) & set(skip)):
        raise UsageError(phrase("{names}: both asked for and skipped", names=", ".join(twice)))
    if address is None and wait is not None:
        raise UsageError(phrase("--wait goes with --ray"))
    if address is not None:
        if diff or show_diff or commit:
            raise UsageError(phrase("--diff and --commit are for one tree; with --ray there may be many"))
        if remember:
            raise UsageError(phrase("--remember is for one tree; with --ray there may be many"))
        from patcher.cluster.planning import Wanted

        return _on_nodes(session, address, Wanted(ids, tags, skip, allow_dirty, merge), dry_run=dry_run, wait=wait)
    from patcher.check.untried import untried
    from patcher.patching.applying import Order
    from patcher.patching.disabling import apply_and_disable
    from patcher.report.apply_result import apply_exit_code, apply_report
    from patcher.terminal.document import print_report

    dry_run = dry_run or diff
    request = session.request(ids, tags, skip)
    order = Order(request, allow_dirty=allow_dirty, commit=commit, merge=merge, remember=remember)
    done = apply_and_disable(session, order, dry_run=dry_run)
    done = done if done.failed else replace(done, untried=untried(session))
    print_report(apply_report(done, session, verb="apply", diff=diff or show_diff, order=order, dry_run=dry_run))
    return apply_exit_code(done, dry_run=dry_run)


def _on_nodes(session: Session, address: str, wanted: Wanted, *, dry_run: bool, wait: float | None) -> int:
    from patcher.cli.nodes import node_progress
    from patcher.cluster.nodes import apply_nodes
    from patcher.report.nodes import applied_exit_code, applied_report
    from patcher.terminal.document import print_report

    with node_progress() as show_answer:
        done = apply_nodes(session, address, wanted, dry_run=dry_run, wait=wait, on_node=show_answer)
    print_report(applied_report(done, address, session.output, dry_run=dry_run))
    return applied_exit_code(done, address, dry_run=dry_run)
