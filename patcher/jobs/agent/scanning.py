"""Find the lines of a log that matter, on the machine where it is, however long it is."""

from __future__ import annotations

import os
import re
from collections import deque
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Iterable, List

from patcher.jobs.agent import folder
from patcher.jobs.agent.reading import Times
from patcher.remote.agent import place

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

BLOCK = 1 << 20
FIRST = 3
LAST = 200
LONGEST = 500
"""Bytes of a line that are told."""

Found = List[Any]
"""A line: its number, the offset behind it, when it was there, its text."""


def scan(request: Request) -> dict[str, Any]:
    """Lines of the log that hold one of the texts `first` (the first few of each) or `last` (the last ones of all).

    Answers what `look` does, with `lines` in order; `offset`: where the last whole line ends; `newlines` before it;
    `wrote`: the job's age when the log last grew.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    times = Times(os.path.join(at, "times"))
    state = folder.look(at)
    with folder.log(at) as log:
        lines, offset, newlines = matter(log, request.args["first"], request.args["last"], times.when, request.gone)
    for line in lines:
        line[2] = state["now"] if line[2] is None else line[2]
    return dict(state, lines=lines, offset=offset, newlines=newlines, wrote=times.when(offset - 1))


def matter(
    log: BinaryIO,
    first: Iterable[str],
    last: Iterable[str],
    when: Callable[[int], float | None],
    gone: Callable[[], bool] = lambda: False,
) -> tuple[list[Found], int, int]:
    """The lines as `scan` tells them, where the last whole line ends, and the newlines before that.

    `when` gives the time at which a byte was there; it is asked for in order.
    """
    early: dict[bytes, int] = {text.encode(): 0 for text in first}
    late = (text.encode() for text in last)
    texts = re.compile(b"|".join(re.escape(text) for text in (*early, *late)))
    firsts: list[Found] = []
    lasts: deque[Found] = deque(maxlen=LAST)
    offset, newlines, rest = 0, 0, b""
    while not gone():
        piece = log.read(BLOCK)
        block = rest + piece
        whole = block.rfind(b"\n") + 1 or (len(block) if len(block) > 4 * BLOCK else 0)
        counted = told = 0
        for found in texts.finditer(block, 0, whole):
            if found.start() < told:
                continue
            start, end = _line(block, found.start(), whole)
            newlines += block.count(b"\n", counted, start)
            counted, told = start, end
            text = block[start : min(end, start + LONGEST)].decode("utf-8", "replace")
            line = [newlines + 1, offset + end, when(offset + end - 1), text]
            if found.group() not in early:
                lasts.append(line)
            elif early[found.group()] < FIRST:
                early[found.group()] += 1
                firsts.append(line)
        newlines += block.count(b"\n", counted, whole)
        offset += whole
        rest = block[whole:]
        if not piece:
            break
    return sorted(firsts + list(lasts), key=lambda line: line[1]), offset, newlines


def _line(block: bytes, at: int, whole: int) -> tuple[int, int]:
    """Where the line, or the state of a progress bar, that holds the byte `at` begins and ends."""
    start = block.rfind(b"\n", 0, at) + 1
    start = max(start, block.rfind(b"\r", start, at) + 1)
    end = block.find(b"\n", at, whole) + 1 or whole
    return start, block.find(b"\r", at, end) + 1 or end
