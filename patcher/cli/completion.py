"""`uky-patch completion SHELL`: a script that completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session
from patcher.terminal.answers import show_json


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@with_session
def command(session: Session, shell: str) -> int:
    """Print a completion script; for bash: uky-patch completion bash >> ~/.bashrc"""
    from patcher.cli.app import COMPLETE, uky_patch

    cls = get_completion_class(shell)
    assert cls is not None
    script = cls(uky_patch, {}, "uky-patch", COMPLETE).source()
    if session.output == "json":
        show_json({"shell": shell, "script": script})
    else:
        click.echo(script)
    return ExitCode.CLEAN
