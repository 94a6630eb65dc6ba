"""Rows in columns: aligned plain text in a pipe, a coloured and wrapped table on a terminal."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import click

from patcher.terminal import drawn, say
from patcher.visible import visible_line


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    style: str = ""
    """A colour name that click and rich both know, or empty."""


Row = Sequence[Cell]


def show_rows(rows: Sequence[Row], *, indent: int = 2) -> None:
    """Print rows to standard output."""
    if not rows:
        return
    rows = [[Cell(visible_line(cell.text), cell.style) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _on_terminal(rows, indent)
    else:
        say(*plain(rows, indent=indent))


def plain(rows: Sequence[Row], *, indent: int = 2) -> list[str]:
    """One line a row, the columns as wide as their widest cell; the last one is not padded."""
    widths = [max(width(row[index].text) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [cell.text + " " * (widths[index] - width(cell.text)) for index, cell in enumerate(row)]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def width(text: str) -> int:
    """Columns on a terminal; Chinese characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _on_terminal(rows: Sequence[Row], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    columns = max(map(len, rows))
    for index in range(columns):
        table.add_column(no_wrap=index < 2, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell.text, style=cell.style) for cell in row))
    click.echo(drawn(Padding(table, (0, 0, 0, indent))), nl=False)
