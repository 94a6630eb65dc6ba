"""`uky-patch pull`: edits made on a host, taken over here."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options, ordered_host
from patcher.cli.options import NEW_THERE, GivenPath, new_files, with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.migrate.host_edits import HostEdits
    from patcher.remote.host import Host


@click.command("pull", cls=Command)
@click.argument("name", metavar="HOST", shell_complete=host_names)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@near_options
@new_files(NEW_THERE)
@click.option("--diff", "show", is_flag=True, help="Show what would change here, and write nothing.")
@click.option(
    "--into", metavar="DIR", type=GivenPath(file_okay=False), help="Write the host's versions into DIR instead."
)
@with_session
def command(
    session: Session, /, name: str, paths: tuple[str, ...], new: bool, show: bool, into: Path | None, **given: Any
) -> int:
    """Take over edits made in the tree on HOST since a migration: merged with what has changed here.

    PATH is a file or folder below the tree's root. An edit whose lines were changed here too stays on the host, and the
    exit code is 1.
    """
    from patcher.migrate.pulling import TAKEN, merge, pull, save_beside
    from patcher.report.host_edits import pulled_report, saved_report
    from patcher.terminal.document import print_report

    if show and into is not None:
        raise UsageError(phrase("{one} and {other} do not go together", one="--diff", other="--into"))
    found = found_edits(session, ordered_host(session, name, given), paths, new=new)
    if into is not None:
        print_report(saved_report(found, str(into), save_beside(found, into), session))
        return ExitCode.CLEAN
    done = tuple(map(merge, found.edits)) if show else pull(session, found)
    print_report(pulled_report(found, done, session, wrote=not show))
    clean = all(one.outcome == "same" or (one.outcome in TAKEN and not show) for one in done)
    return ExitCode.CLEAN if clean else ExitCode.FINDINGS


def found_edits(session: Session, host: Host, paths: tuple[str, ...], *, new: bool) -> HostEdits:
    """What was edited on the host. Raises UsageError for this machine, and what `find_edits` raises."""
    from patcher.migrate.host_edits import find_edits
    from patcher.remote.link import linked

    if host.here:
        raise UsageError(
            phrase("edits are looked for on another machine"),
            cause=phrase("{name} stands for this one", name=host.name),
            advice=phrase("Here, git shows them: git diff"),
        )
    with linked(host, session.tree.root) as link:
        connection, _ = link.open()
        below = tuple(posixpath.normpath(path) for path in paths)
        return find_edits(session, connection, below, new=new)
