"""The parts of a log that tell: its last lines, and what surrounds one line. In bounded memory, whatever the size."""

from __future__ import annotations

import gzip
import lzma
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

LAST = 200
"""Lines of the end."""
BEFORE, BEHIND = 60, 60
"""Lines around the one that tells; the traceback that it ends is told whole."""
DEEPEST = 400
"""Lines that are looked back for the beginning of a traceback."""
LONGEST = 4000
"""Characters of a line that are given."""
HEAD = 4 << 20
"""Bytes of the beginning in which the command is looked for."""
_TAIL = 8 << 20
_PACKED = (".gz", ".xz")
_BLOCK = 1 << 20
_BEGIN = "Traceback (most recent call last)"
_RUN = re.compile(
    r"^\++ ?(?P<command>(?:exec |nohup |env (?:\S+=\S* )*|[A-Z_]+=\S* )*(?:\S*/)?"
    r"(?:python3?(?:\.\d+)?|torchrun|accelerate|deepspeed|srun|ray|uv run|bash|sh)\s.+)$"
)


def tail(path: Path, count: int = LAST) -> str:
    """The last `count` lines. Of a progress bar's states in one line only the last is given."""
    if path.suffix in _PACKED:
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


def opened(path: Path) -> IO[bytes]:
    """A log, unpacked on the way where it is packed."""
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case ".xz":
            return cast("IO[bytes]", lzma.open(path, "rb"))
        case _:
            return path.open("rb")


def command_in(path: Path) -> str:
    """The command that a shell with `set -x` has shown before it ran it; empty where there is none."""
    with opened(path) as stream:
        text = stream.read(HEAD).decode("utf-8", "replace")
    found = [match["command"] for line in text.splitlines() if (match := _RUN.match(line))]
    python = [command for command in found if re.search(r"python|torchrun|accelerate|deepspeed|ray job", command)]
    return (python or found or [""])[0]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number; of a line that is longer than a block, its last state or its beginning alone."""
    number, held = 1, b""
    with opened(path) as stream:
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
