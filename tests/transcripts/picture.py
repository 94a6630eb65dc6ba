"""The picture of a session for the READMEs: an SVG of a terminal, made from a session that the tests run.

`python -m tests.transcripts --write` writes the pictures after the sessions; a test compares them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from html import escape

from tests.transcripts.documents import ELLIPSIS, ROOT, Session, parts, sessions

PICTURES: Mapping[str, str] = {
    "docs/images/session.svg": "docs/tutorials/stale-fork.md",
    "docs/images/session.zh-CN.svg": "docs/tutorials/stale-fork.zh-CN.md",
}
"""Each picture, and the document whose first session it shows."""
SHOWN = ("uky-patch status", "uky-patch apply", "uky-patch verify")
"""The commands of that session that are in the picture, with what they print."""

_COLUMNS = 124  # Most rows of `status` fit. A README is some 830 px wide: more columns would be too small to read.
_CELL, _LINE, _EDGE = 7.2, 18, 16  # Pixels; a monospaced font of 12 px is 7.2 px wide in most browsers.
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d6d9de}"
    ".c{fill:#fff;font-weight:700}.n{fill:#8b949e}"
)


def drawn(picture: str) -> str:
    """What the file of a picture should hold."""
    return svg(next(sessions(ROOT / PICTURES[picture])))


def svg(session: Session) -> str:
    """A terminal that shows the commands of SHOWN."""
    lines: list[str] = []
    for command, *printed in parts(session.lines):
        if command.removeprefix("$ ") not in SHOWN:
            continue
        shown = "\n".join((command, *printed)).rstrip().splitlines()
        lines += [*([""] if lines else []), *(piece for line in shown for piece in _folded(line))]
    width, height = round(_COLUMNS * _CELL + 2 * _EDGE), len(lines) * _LINE + 2 * _EDGE
    rows = [_row(line, _EDGE + _LINE * (index + 1) - 5) for index, line in enumerate(lines) if line]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f'<style>{_STYLE}</style><rect width="{width}" height="{height}" rx="8" fill="#161b22"/>',
            *rows,
            "</svg>\n",
        ]
    )


def _row(line: str, y: int) -> str:
    """One line; its columns are placed one by one, so that they stand below each other in any font and script."""
    kind = "c" if line.startswith("$ ") else "n" if line.strip() == ELLIPSIS or ": " in line[:8] else ""
    cells = [
        f'<tspan x="{_EDGE + _columns(line[: found.start()]) * _CELL:.1f}">{escape(found[0])}</tspan>'
        for found in re.finditer(r"\S+(?: \S+)*", line)
    ]
    return f'<text y="{y}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{"".join(cells)}</text>'


def _folded(line: str) -> Iterator[str]:
    """A line in pieces that fit, broken between words; the text of a row's last column stays in that column."""
    cells = [found.start() for found in re.finditer(r"(?<=  )\S", line)]
    indent = " " * (_columns(line[: cells[-1]]) if cells else 4)
    piece = ""
    for word in re.split(r"(?<= )(?=\S)", line):
        if piece.strip() and _columns(piece + word.rstrip()) > _COLUMNS:
            yield piece.rstrip()
            piece = indent
        piece += word
    yield piece.rstrip()


def _columns(text: str) -> int:
    """The columns of a terminal that a text takes: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
