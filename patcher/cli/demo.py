"""`uky-patch demo`: the whole round on a real verl release."""

from __future__ import annotations

from pathlib import Path

import click

from patcher.cli.help import Command
from patcher.cli.options import GivenPath, with_session
from patcher.session.session import Session


@click.command("demo", cls=Command)
@click.option("--verl", default="0.6.1", metavar="VER", show_default=True, help="The verl release to work on.")
@click.option("--vllm", default="0.20.2", metavar="VER", show_default=True, help="The vLLM release to make it run on.")
@click.option("--keep", type=GivenPath(), metavar="DIR", help="Work in this new folder and leave it.")
@with_session
def command(session: Session, verl: str, vllm: str, keep: Path | None) -> int:
    """Fetch a verl release into a scratch folder and go the whole round there. Needs no GPU and installs nothing."""
    from patcher.cli.demo_report import show_demo

    return show_demo(verl, vllm, keep, output=session.output)
