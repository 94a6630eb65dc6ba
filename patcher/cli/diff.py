"""`uky-patch diff`: what was edited on a host."""

from __future__ import annotations

from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import near_options, ordered_host
from patcher.cli.options import NEW_THERE, new_files, with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("diff", cls=Command)
@click.argument("name", metavar="HOST", shell_complete=host_names)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@near_options
@new_files(NEW_THERE)
@with_session
def command(session: Session, /, name: str, paths: tuple[str, ...], new: bool, **given: Any) -> int:
    """Show what was edited in the tree on HOST since a migration brought it there. Reads only.

    PATH is a file or folder below the tree's root. Exit code 1 if anything was edited.
    """
    from patcher.cli.pull import found_edits
    from patcher.migrate.pulling import not_here
    from patcher.report.host_edits import edits_report
    from patcher.terminal.document import print_report

    found = not_here(found_edits(session, ordered_host(session, name, given), paths, new=new))
    print_report(edits_report(found, session))
    return ExitCode.FINDINGS if found.edits else ExitCode.CLEAN
