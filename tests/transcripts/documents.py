"""Sessions in documents: fenced blocks with `$ ` lines, and how one is written anew from what its commands print.

    <!-- session: stale-fork -->
    ```
    $ uky-patch status
    verl 0.6.1 (/home/me/verl_fork, main@58ead9a16) · …
      …
    13 pending, 32 not needed. Next: uky-patch apply --diff
    ```

The comment names the scene in which the commands run. A line of `…` alone stands for any number of lines. What no test
can run is shown without output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
ELLIPSIS = "…"
_COMMENT = re.compile(r"<!-- session: (?P<scene>.+) -->")
_FIGURES = (
    (re.compile(r" *[\d.]+ (s\b|秒)"), r" # \1"),
    (re.compile(r"[\d.]+ GB free|剩余 [\d.]+ GB"), "# GB"),
    (re.compile(r"@[0-9a-f]{7,}"), "@#"),
    (re.compile(r"\b(transformers|triton|ray|tensordict|python) \d+\.[\w.]+"), r"\1 #"),
    (re.compile(r"(multiprocessing/\w+\.py:[\w.]+):\d+"), r"\1:#"),
)
"""What differs from one run to the next: seconds, a disk's room, a commit's id, releases that a host takes as they come
out, and lines of Python's own files."""

Run = Callable[[str], str]
"""Runs a command line and gives what it prints."""


@dataclass(frozen=True)
class Session:
    """A block of `file` that begins with its fence at `line`, counted from 1."""

    file: Path
    line: int
    scene: str
    """The name in the comment, or "" where there is no comment."""
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{name_of(self.file)}:{self.line}"

    @property
    def chinese(self) -> bool:
        return self.file.name.endswith(".zh-CN.md")

    @property
    def commands(self) -> list[str]:
        return [line.removeprefix("$ ") for line in self.lines if line.startswith("$ ")]


def name_of(file: Path) -> str:
    """A document's path as messages and test ids show it."""
    return str(file.relative_to(ROOT))


def sessions(file: Path) -> Iterator[Session]:
    """The blocks of a document that show a session."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for start, end in blocks(lines):
        inner = tuple(lines[start + 1 : end])
        if any(line.startswith("$ ") for line in inner):
            comment = _COMMENT.fullmatch(lines[start - 1]) if start else None
            yield Session(file, start + 1, comment["scene"] if comment else "", inner)


def blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where fenced blocks begin and end, by the indexes of their fences."""
    start = None
    for index, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = index
        else:
            yield start, index
            start = None


def anew(session: Session, run: Run) -> tuple[str, ...]:
    """The block's lines with what its commands print now; what it leaves out is left out again."""
    written: list[str] = []
    for command, *shown in parts(session.lines):
        printed = _trimmed(run(command.removeprefix("$ ")).splitlines())
        written += [*([""] if written else []), command, *merged(_trimmed(shown), printed)]
    return tuple(written)


def parts(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a session by command: each command's own line, then what is shown of its output."""
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append([line])
        else:
            found[-1].append(line)
    return found


def merged(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """`printed`, shortened where `shown` has `…`; a line that differs in its figures alone stays as it is shown."""
    old, new = [_without_figures(line) for line in shown], [_without_figures(line) for line in printed]
    found: list[str] = []
    for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += shown[start:end]
        else:
            found += _between(shown[start:end], printed[first:last])
    return found


def _between(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Of lines that are new, as many as were shown before and after the `…` in their place; all where there is none."""
    marks = [index for index, line in enumerate(shown) if line.strip() == ELLIPSIS]
    if not marks:
        return list(printed)
    before, after = marks[0], len(shown) - marks[-1] - 1
    if len(printed) <= before + after:
        return list(printed)
    return [*printed[:before], shown[marks[0]], *printed[len(printed) - after :]]


def replace(session: Session, lines: Sequence[str]) -> None:
    """Write the block anew into its document."""
    text = session.file.read_text(encoding="utf-8").splitlines(keepends=True)
    text[session.line : session.line + len(session.lines)] = [f"{line}\n" for line in lines]
    session.file.write_text("".join(text), encoding="utf-8")


def _without_figures(line: str) -> str:
    for pattern, instead in _FIGURES:
        line = pattern.sub(instead, line)
    return line


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without blank lines at either end, and without blanks at the end of a line."""
    found = [line.rstrip() for line in lines]
    while found and not found[-1]:
        found.pop()
    while found and not found[0]:
        found.pop(0)
    return found
