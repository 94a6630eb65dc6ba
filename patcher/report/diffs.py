"""Unified diffs of planned files."""

from __future__ import annotations

import difflib
import sys

from patcher.terminal.printing import say, show_exactly, style
from patcher.visible import visible

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


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
    say(*(_coloured(line.expandtabs()) for line in visible(text).split("\n") if line))


def _coloured(line: str) -> str:
    if line.startswith(("---", "+++")):
        return style(line, bold=True)
    return style(line, _COLOURS.get(line[:1]))
