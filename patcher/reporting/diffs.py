"""Unified diffs of planned files."""

from __future__ import annotations

import difflib
import sys

import click

from patcher.terminal import drawn, show_exactly
from patcher.visible import visible


def unified(path: str, before: str, after: str) -> str:
    """A unified diff, empty where the texts are equal."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def show_diff(text: str) -> None:
    """Print a diff, highlighted on a terminal."""
    if not text:
        return
    if not sys.stdout.isatty():
        from patcher.secrets.redacting import here

        show_exactly(here().text(text))
        return
    from rich.syntax import Syntax

    shown = Syntax(visible(text), "diff", theme="ansi_dark", background_color="default", word_wrap=True)
    click.echo(drawn(shown), nl=False)
