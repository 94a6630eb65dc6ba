"""The parts of a log that a report shows: its last lines, and what surrounds its root. In bounded memory."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.bundle.contents import Section
from patcher.diagnose.log_stream import is_packed, open_log
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis

LAST = 200
"""Lines of the end: the tracebacks of several ranks."""
BEFORE, BEHIND = 60, 60
"""Lines around the one that tells; the traceback that it ends is shown whole."""
DEEPEST = 400
"""Lines that are looked back for the beginning of a traceback: the deepest ones have some 100 frames of two lines."""
LONGEST = 4000
"""Characters of a line that are given: a whole command with its overrides, and of a dump of data its beginning."""
HEAD = 4 << 20
"""Bytes of the beginning in which the command is looked for."""
_TAIL = 8 << 20
"""Bytes of the end in which the last lines are looked for: 200 lines, also where each is a long dump of data."""
_BLOCK = 1 << 20
"""Bytes that are read at once; a line that is longer is not held whole."""
_BEGIN = "Traceback (most recent call last)"
# `+ python3 -m verl.trainer.main_ppo`, `++ env X=1 torchrun …`: `set -x` puts a `+` for each level of shells.
_RUN = re.compile(
    r"^\++ ?(?P<command>(?:exec |nohup |env (?:\S+=\S* )*|[A-Z_]+=\S* )*(?:\S*/)?"
    r"(?:python3?(?:\.\d+)?|torchrun|accelerate|deepspeed|srun|ray|uv run|bash|sh)\s.+)$"
)


def log_sections(path: Path, diagnosis: Diagnosis | None, *, whole: bool) -> tuple[list[Section], str, str]:
    """The end of the log, what surrounds the root, and with `whole` all of it.

    Returns these, the text that a report quotes, and the number of its first line ("" where it is not known).
    `path` may be a folder of logs: then the file of the root counts, else the one that was written to last.
    """
    root = diagnosis.root if diagnosis is not None else None
    path = Path(root.place.file) if root is not None else path
    if path.is_dir():
        logs = [one for one in path.rglob("*") if one.suffix in (".log", ".out", ".err") and one.is_file()]
        path = max(logs, key=lambda one: one.stat().st_mtime, default=path)
    there = path.is_file()
    excerpt, first = (tail(path) if there else ""), ""
    sections = [Section("log/tail.txt", phrase("the last {count} lines", count=LAST), excerpt)]
    if root is not None and root.place.number and there:
        excerpt, number = around(path, root.place.number)
        holds = phrase("the lines around the root, from line {first} on", first=number)
        sections.append(Section("log/root.txt", holds, excerpt))
        first = str(number)
    if whole and there:
        sections.append(Section("log/whole.txt", phrase("the whole log, without secrets"), path))
    return sections, excerpt, first


def tail(path: Path, count: int = LAST) -> str:
    """The last `count` lines. Of a progress bar's states in one line only the last is given."""
    if is_packed(path):
        last = deque((line for _, line in _lines(path)), maxlen=count)
        return "".join(f"{_shown(line)}\n" for line in last)
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - _TAIL))
        content = stream.read(_TAIL)
    lines = content.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return "".join(f"{_shown(line)}\n" for line in lines[-count:])


def around(path: Path, number: int) -> tuple[str, int]:
    """The lines around the line `number` (from 1), with the whole traceback before it; and the first one's number."""
    before: deque[bytes] = deque(maxlen=DEEPEST)
    behind: list[bytes] = []
    for at, line in _lines(path):
        if at <= number:
            before.append(line)
        elif len(behind) < BEHIND:
            behind.append(line)
        else:
            break
    kept = [_shown(line) for line in before]
    begun = next((index for index in range(len(kept) - 1, -1, -1) if _BEGIN in kept[index]), len(kept))
    first = max(0, min(len(kept) - 1 - BEFORE, begun - 10))
    lines = [*kept[first:], *(_shown(line) for line in behind)]
    return "".join(f"{line}\n" for line in lines), min(number, number - (len(kept) - 1 - first))


def command_in(path: Path) -> str:
    """The command that a shell with `set -x` shows before it runs it: `+ python3 -m verl.trainer.main_ppo lr=1`.

    Empty where there is none.
    """
    if not path.is_file():
        return ""
    with open_log(str(path)) as stream:
        head = b""
        while len(head) < HEAD and (piece := stream.read(HEAD - len(head))):
            head += piece
    text = head.decode("utf-8", "replace")
    found = [match["command"] for line in text.splitlines() if (match := _RUN.match(line))]
    python = [command for command in found if re.search(r"python|torchrun|accelerate|deepspeed|ray job", command)]
    return (python or found or [""])[0]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number; of a line that is longer than a block, its last state or its beginning alone."""
    number, held = 1, b""
    with open_log(str(path)) as stream:
        while piece := stream.read(_BLOCK):
            first, newline, rest = piece.partition(b"\n")
            held = held + first if len(held) < _BLOCK else held[-_BLOCK // 2 :] + first[-_BLOCK // 2 :]
            if not newline:
                continue
            yield number, held
            whole = rest.split(b"\n")
            for index, line in enumerate(whole[:-1], 1):
                yield number + index, line
            number += len(whole)
            held = whole[-1]
    if held:
        yield number, held


def _shown(line: bytes) -> str:
    """A line without what it overwrote, at most so long."""
    states = [state for state in line.rstrip(b"\r").split(b"\r") if state.strip()]
    text = (states[-1] if states else b"").decode("utf-8", "replace").rstrip("\r\n")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … (+{len(text) - LONGEST})"
