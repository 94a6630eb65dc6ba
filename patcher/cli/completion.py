"""`uky-patch completion SHELL`: a script that completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print a completion script; for bash: uky-patch completion bash >> ~/.bashrc"""
    from patcher.cli.app import uky_patch

    cls = get_completion_class(shell)
    assert cls is not None
    click.echo(cls(uky_patch, {}, "uky-patch", "_UKY_PATCH_COMPLETE").source())
    return 0
