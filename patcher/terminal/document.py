"""What a report consists of, and the one function that prints it.

A report is a function from values to parts; it prints nothing and reads no file. A command hands the parts to
`print_report`, which knows whether they go to a terminal, how wide that is, and what is a secret:

    print_report(status_report(found, session))
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from patcher.i18n import Phrase, Phrases
from patcher.terminal.answers import Report, show_json
from patcher.terminal.printing import say, show_exactly
from patcher.terminal.sequences import style
from patcher.terminal.table import Row, show_rows
from patcher.visible import visible

Output: TypeAlias = Literal["text", "json"]
"""`--format`: a report for people, or one for programs."""
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Lines:
    """A line for each text, wrapped to the width of a terminal; a phrase is shown in the reader's language."""

    def __init__(self, *texts: Phrase | Phrases | str, err: bool = False) -> None:
        self.texts, self.err = texts, err


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in columns, below their headings if there are any; a terminal that is too narrow gets them stacked."""

    rows: Sequence[Row]
    head: Row = ()
    indent: int = 2


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff: in colours on a terminal, byte for byte (but for secrets) in a file or pipe."""

    text: str


@dataclass(frozen=True, slots=True)
class Exact:
    """A file's own text: every byte as it is in a file or pipe, with control characters visible on a terminal."""

    text: str


@dataclass(frozen=True, slots=True)
class Json:
    """The one object that a command gives with `--format json`."""

    report: Report


Part: TypeAlias = Lines | Table | Diff | Exact | Json


def print_report(parts: Iterable[Part]) -> None:
    """Print the parts in their order, each when it comes."""
    for part in parts:
        match part:
            case Lines():
                say(*part.texts, err=part.err)
            case Table():
                show_rows(part.rows, indent=part.indent, head=part.head)
            case Diff():
                _show_diff(part.text)
            case Exact():
                show_exactly(part.text)
            case Json():
                show_json(part.report)


def unified(path: str, before: str | None, after: str) -> str:
    """A unified diff, empty where the texts are equal. `before`: None of a file that is new."""
    old = f"a/{path}" if before is not None else "/dev/null"
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True), after.splitlines(keepends=True), old, f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _show_diff(text: str) -> None:
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
