"""Tables: rows in aligned columns; on a terminal that is too narrow each row is stacked, its long cells below.

A reason that three or more rows repeat is shown once above the table, and the rows refer to it: `[1]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from patcher.i18n import NOTHING, Language, Phrase, Phrases, language, show
from patcher.terminal.layout import NARROW, width, wrapped
from patcher.terminal.printing import room, say, settled
from patcher.terminal.sequences import style
from patcher.visible import visible_line

_LONG = 32
"""Columns from which on a cell is a text, which stands on lines of its own."""
_WORTH = 40
"""Columns from which on a reason is shown once for all rows that repeat it."""
_OFTEN = 3
_DIFFERING = "spec"
"""What may differ in a reason that is shown once: the range of releases that a record is for. The rows tell it then."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    style: str = ""
    """A colour of `patcher.terminal.sequences.style`, `bold`, or empty."""
    reason: Phrase | Phrases | str = NOTHING
    """What explains it; shown once above the table where several rows have it."""


Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class _Note:
    """A reason that is shown once."""

    number: int
    text: Phrase | Phrases | str
    differs: bool

    def mark(self, reason: Phrase | Phrases | str) -> str:
        """What a row has in its place: `[1]`, or `[1: >=0.6,<0.9]`."""
        if self.differs and isinstance(reason, Phrase):
            return f"[{self.number}: {reason.fields[_DIFFERING]}]"
        return f"[{self.number}]"


def show_rows(rows: Sequence[Row], *, indent: int = 2, head: Row = ()) -> None:
    """Print rows to standard output, below their headings if there are any."""
    if not rows:
        return
    notes, rows = _numbered_reasons(rows, language())
    stream = sys.stdout
    headed = [head, *rows] if head else rows
    rows = [[replace(one, text=settled(visible_line(one.text), stream)) for one in row] for row in headed]
    if notes:
        say(*(" " * indent + note for note in notes), "")
    lines, columns = plain(rows, indent=indent), room(stream)
    if columns and any(width(line) > columns for line in lines):
        stacked = columns < NARROW or bool(head)
        lines = list(_below(rows, indent, columns, bool(head)) if stacked else _beside(rows, indent, columns))
    if head:
        say(*lines)
    else:
        for line in lines:  # Each by itself: the first is no heading, `… does not accept the API key` above a column.
            say(line)


def plain(rows: Sequence[Row], *, indent: int = 2) -> list[str]:
    """One line a row, the columns as wide as their widest cell; the last one is not padded."""
    widths = [max(width(row[index].text) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [_shown(cell) + " " * (widths[index] - width(cell.text)) for index, cell in enumerate(row)]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines


def _beside(rows: Sequence[Row], indent: int, columns: int) -> Iterator[str]:
    """The last column in as many lines as it takes, where the others leave it room."""
    before = max(map(width, plain([row[:-1] for row in rows], indent=indent))) + 2
    if before > columns * 0.6:
        yield from _below(rows, indent, columns, headed=False)
        return
    for line in plain(rows, indent=indent):
        yield from wrapped(line, columns, hang=before)


def _below(rows: Sequence[Row], indent: int, columns: int, headed: bool) -> Iterator[str]:
    """What is short in a row on its first line, its texts below; with headings each cell below has its own."""
    if headed:
        names, *rows = rows
        for row in rows:
            yield from wrapped(" " * indent + _shown(row[0]), columns)
            pairs = [f"{name.text} {_shown(cell)}" for name, cell in zip(names[1:], row[1:], strict=False)]
            yield from _packed(pairs, indent + 4, columns)
        return
    count = max(map(len, rows))
    widest = [max((width(row[index].text) for row in rows if index < len(row)), default=0) for index in range(count)]
    # Columns up to the first long one (or the last one) stay side by side: `pending  vllm-log-requests  utils.py:12`.
    first = next((index for index in range(1, count) if widest[index] > _LONG or index == count - 1), 1)
    first = max(first, min(2, count - 1))
    heads = plain([row[:first] for row in rows], indent=indent)
    for head, row in zip(heads, rows, strict=True):
        if width(head) > columns:
            head = " " * indent + "  ".join(_shown(cell) for cell in row[:first] if cell.text)
        yield from wrapped(head, columns, hang=indent + 2)
        yield from _packed([_shown(cell) for cell in row[first:] if cell.text], indent + 4, columns)


def _packed(parts: Sequence[str], indent: int, columns: int) -> Iterator[str]:
    """Short parts side by side, a long one on lines of its own."""
    line = ""
    for part in parts:
        if line and indent + width(line) + 2 + width(part) > columns:
            yield from wrapped(" " * indent + line, columns, hang=indent)
            line = ""
        line += f"  {part}" if line else part
    if line:
        yield from wrapped(" " * indent + line, columns, hang=indent)


def _shown(cell: Cell) -> str:
    if cell.style == "bold":
        return style(cell.text, bold=True)
    return style(cell.text, cell.style) if cell.style and cell.text else cell.text


def _numbered_reasons(rows: Sequence[Row], tongue: Language) -> tuple[list[str], list[list[Cell]]]:
    """Long reasons that several rows share, to be shown above; and the rows, with the note's number instead."""
    reasons: dict[object, list[Phrase | Phrases | str]] = {}
    for part in (part for row in rows for cell in row for part in _parts(cell.reason)):
        reasons.setdefault(_kind(part), []).append(part)
    often = (kind for kind, found in reasons.items() if len(found) >= _OFTEN)
    long = (kind for kind in often if width(show(reasons[kind][0], tongue)) >= _WORTH)
    notes = {kind: _common(number, reasons[kind]) for number, kind in enumerate(long, 1)}
    lines = [f"[{note.number}] {show(note.text, tongue)}" for note in notes.values()]
    return lines, [[_with_reason(cell, notes, tongue) for cell in row] for row in rows]


def _parts(reason: Phrase | Phrases | str) -> Iterator[Phrase | Phrases | str]:
    if not isinstance(reason, Phrases):
        yield from [reason] if reason else []
        return
    for part in reason.parts:
        if isinstance(part, Phrases) and part.separator != reason.separator:
            yield part
        else:
            yield from _parts(part)


def _kind(reason: Phrase | Phrases | str) -> object:
    """What is the same in reasons that are shown once."""
    if isinstance(reason, Phrase):
        return reason.template, *((name, str(value)) for name, value in reason.fields.items() if name != _DIFFERING)
    return str(reason)


def _common(number: int, reasons: Sequence[Phrase | Phrases | str]) -> _Note:
    first = reasons[0]
    found = {str(one.fields.get(_DIFFERING)) for one in reasons if isinstance(one, Phrase)}
    if not isinstance(first, Phrase) or len(found) == 1:
        return _Note(number, first, differs=False)
    return _Note(number, Phrase(first.template, {**first.fields, _DIFFERING: "…"}), differs=True)


def _with_reason(cell: Cell, notes: Mapping[object, _Note], tongue: Language) -> Cell:
    parts = list(_parts(cell.reason))
    separator = cell.reason.separator if isinstance(cell.reason, Phrases) else ""
    text = show(Phrases(tuple(part for part in parts if _kind(part) not in notes), separator), tongue)
    if cell.text and text:
        text = f"{cell.text} ({text})"
    marks = [notes[_kind(part)].mark(part) for part in parts if _kind(part) in notes]
    return Cell(" ".join(filter(None, [text or cell.text, *marks])), cell.style)
