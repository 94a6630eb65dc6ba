"""`uky-patch trust`: say that a tree's own environment may be started, or take that back."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session


@click.command("trust", cls=Command)
@click.option("--forget", is_flag=True, help="Take it back.")
@with_session
def command(session: Session, forget: bool) -> int:
    """Trust this tree: the interpreter of its own .venv or venv, and the one that its uky-patch.toml names, count.

    Without that they are never started; --python and an activated environment count anyway. It is remembered in your
    state folder, not in the tree.
    """
    from patcher.report.status import trust_report
    from patcher.terminal.document import print_report
    from patcher.trust import distrust, is_trusted, trust

    root = session.tree.root
    if forget:
        distrust(root)
    else:
        trust(root)
    print_report(trust_report(root, session.output, trusted=is_trusted(root)))
    return ExitCode.CLEAN
