"""The verbs that read jobs and their logs: `job_list`, `job_look`, `job_follow`, `job_tail`, `job_scan` and `job_log`.

`job_follow` sends a log as it grows. `job_scan` searches a log on the machine where it lies, so that gigabytes need not
be sent. `job_log` sends a log whole, or its beginning and its end, without the secrets that are known there.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Iterable, List, Pattern

from patcher.jobs.agent import folder, processes
from patcher.jobs.agent.folder import working_configuration
from patcher.remote.agent import place, variables
from patcher.secrets.known import values_here
from patcher.secrets.redacting import Following, Redactor
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

CHUNK = 1 << 18
"""Bytes of a log that are sent at once; no more than this is held in memory."""
TICK = 1.0
"""Seconds between two events that tell the job's age."""
NAP = 0.1
"""Seconds between two looks whether the log has grown."""
TAIL = 8 << 20
"""Bytes at the end of a log in which its last lines are searched, where they are few. A guess: progress bars without
newlines grow to megabytes."""
_USUAL = 1 << 12
"""Bytes for each of many lines that are asked for. A guess: a line of a hundred metrics has as many."""
_WATCHED = 0.3
"""Seconds between two looks at the processes, whose CPU time in between makes their share. A guess."""


def jobs(request: Request) -> dict[str, Any]:
    """All jobs of the tree as `jobs`, oldest first, each as `folder.look` tells it."""
    return {"jobs": list(folder.all_jobs(place.root(request)))}


def look(request: Request) -> dict[str, Any]:
    """The job `id`, as `folder.look` tells it, and what it uses now.

    `processes`: each with `pid`, `name`, `cpu` (percent of one core), `seconds` (CPU time in all) and `memory` (bytes);
    `gpus`: those of this machine; `working`: the configuration that worked last.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    state = folder.look(at)
    before = processes.of_job(state, processes.table()) if state["elsewhere"] is None and "runner" in state else []
    if before:
        time.sleep(_WATCHED)
    earlier = {process.pid: process.cpu for process in before}
    state["processes"] = []
    for pid in earlier:
        process = processes.one(pid)
        if process is not None:
            share = max(0.0, process.cpu - earlier[pid]) / _WATCHED * 100
            state["processes"].append(
                {"pid": pid, "name": process.name, "cpu": share, "seconds": process.cpu, "memory": process.memory}
            )
    state["gpus"] = processes.gpus_in_use() if "slurm" not in state else []
    state["working"] = working_configuration(place.root(request))
    return state


def follow(request: Request) -> dict[str, Any]:
    """The log from the byte `offset` on, in events with a body; with `wait` until the job has ended, or for `seconds`.

    An event with a body has its `offset`, `times` (each the seconds since the job's start, and the bytes that the log
    had then) and `upto`, the job's age when it was read. Other events have `now`, the job's age; `queue`, what Slurm
    says, where its reason to wait has changed; or `cut`, where the log is shorter than `offset` and is read from its
    beginning. The answer is what `folder.look` tells, with the `offset` after the last byte.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    wait = bool(request.args.get("wait"))
    at_byte = int(request.args.get("offset", 0))
    times = Times(os.path.join(at, "times"))
    message = begun = time.monotonic()
    seconds = request.args.get("seconds")
    reported: Any = False

    def age() -> float:
        return float(folder.look(at)["now"])

    with folder.log(at) as log:
        if at_byte > os.fstat(log.fileno()).st_size:
            at_byte = 0
            request.emit(cut=True)
        log.seek(at_byte)
        while True:
            at_byte = _send(request, log, at_byte, times, age)
            state = folder.look(at)
            waits = state["state"] == "queued" and (state["queue"].get("reason") or state["queue"].get("away"))
            if waits != reported and (waits or state["state"] == "running"):
                reported = waits
                request.emit(queue=state["queue"])
            if state["state"] not in folder.NOT_OVER:
                # What it wrote between the reading above and its end.
                at_byte = _send(request, log, at_byte, times, age)
                break
            if not wait or request.gone():
                break
            if seconds is not None and time.monotonic() - begun >= seconds:
                break
            if time.monotonic() - message >= TICK:
                message = time.monotonic()
                request.emit(now=state["now"])
            if os.fstat(log.fileno()).st_size <= at_byte:
                time.sleep(NAP)
    state["offset"] = at_byte
    return state


def tail(request: Request) -> dict[str, Any]:
    """The last `lines` lines of the log in events with a body. Answers what `folder.look` tells, with the `offset`
    after them; and `cut`, whether the first of them were left out, as the lines are too long for `TAIL` and `_USUAL`.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    wanted = int(request.args.get("lines", 10))
    with folder.log(at) as log:
        size = os.fstat(log.fileno()).st_size
        floor = max(0, size - max(TAIL, wanted * _USUAL))
        begin = _last_lines(log, size, wanted, floor)
        log.seek(floor if begin is None else begin)
        if begin is None and not log.readline(CHUNK).endswith(b"\n"):
            log.seek(floor)  # The line is so long that its end is better than nothing of it.
        while not request.gone():
            piece = log.read(min(CHUNK, max(0, size - log.tell())))
            if not piece:
                break
            request.emit_body(piece)
    return dict(folder.look(at), offset=size, cut=begin is None)


def _last_lines(log: BinaryIO, size: int, wanted: int, floor: int) -> int | None:
    """Where the last `wanted` of the log's first `size` bytes' lines begin; None if that is before the byte `floor`."""
    at = size
    while wanted and at > floor:
        start = max(floor, at - BLOCK)
        log.seek(start)
        block = log.read(at - start)
        end = len(block) - (at == size and block.endswith(b"\n"))
        found = block.count(b"\n", 0, end)
        if found >= wanted:
            for _ in range(wanted):
                end = block.rfind(b"\n", 0, end)
            return start + end + 1
        wanted -= found
        at = start
    return at if not wanted or not floor else None


class Times:
    """The notes in a job's file `times`, which grows: at so many seconds the log had so many bytes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        self._notes: list[tuple[float, int]] = []

    def between(self, first: int, last: int) -> list[tuple[float, int]]:
        """The notes that tell when the bytes from `first` to `last` came; to be asked for in order.

        The last of them is the first one at which the log had all of these bytes.
        """
        self._more()
        self._notes = [note for note in self._notes if note[1] > first]
        found = [note for note in self._notes if note[1] < last]
        return found + self._notes[len(found) : len(found) + 1]

    def when(self, offset: int) -> float | None:
        """Seconds from the start at which the byte at `offset` was there; None where that is not noted yet."""
        found = self.between(offset, offset + 1)
        return found[0][0] if found else None

    def _more(self) -> None:
        try:
            with files.open_binary(self._path, follow=False) as stream:
                stream.seek(self._read)
                content = stream.read(TAIL) or b""
        except OSError:
            return
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            seconds, _, size = line.partition(b" ")
            if size.isdigit():
                self._notes.append((float(seconds), int(size)))


def _send(request: Request, log: BinaryIO, offset: int, times: Times, now: Callable[[], float]) -> int:
    """Send what the log has from `offset` on, in events with a body. Returns the offset after it."""
    while not request.gone():
        piece = log.read(CHUNK)
        if not piece:
            break
        last = offset + len(piece)
        request.emit_body(piece, offset=offset, times=times.between(offset, last), upto=now())
        offset = last
    return offset


BLOCK = 1 << 20
"""Bytes that are searched at once."""
FIRST = 3
"""How many lines count for each text of `first`. A guess: the first one tells the milestone, and ranks repeat it."""
LAST = 200
"""How many of the last lines with a text of `last` count. A guess: the last steps, and a traceback behind them."""
LONGEST = 500
"""Bytes of a line that are sent: an exception says what it is at its beginning."""

Found = List[Any]
"""A line: its number, the offset behind it, the seconds since the job's start at which it was there, and its text."""


def scan(request: Request) -> dict[str, Any]:
    """Find the lines of the log that hold one of the texts `first` (the first few of each) or `last` (the last ones of
    all).

    Events have `searched`, how many bytes are done. Answers what `folder.look` does, with `lines` (see `Found`) in
    order; `offset`, where the last whole line ends; `newlines`, how many come before that; and `wrote`, the job's age
    when the log last grew.
    """
    at = folder.folder_of(place.root(request), request.args.get("id"))
    times = Times(os.path.join(at, "times"))
    state = folder.look(at)
    told = time.monotonic()
    with folder.log(at) as log:

        def gone() -> bool:
            nonlocal told
            if time.monotonic() - told >= TICK:
                told = time.monotonic()
                request.emit(searched=log.tell())
            return request.gone()

        lines, offset, newlines = find_lines(log, request.args["first"], request.args["last"], times.when, gone)
    for line in lines:
        line[2] = state["now"] if line[2] is None else line[2]
    return dict(state, lines=lines, offset=offset, newlines=newlines, wrote=times.when(offset - 1))


def find_lines(
    log: BinaryIO,
    first: Iterable[str],
    last: Iterable[str],
    when: Callable[[int], float | None],
    gone: Callable[[], bool] = lambda: False,
) -> tuple[list[Found], int, int]:
    """The lines as `scan` answers them, the offset at which the last whole line ends, and the newlines before that.

    `when` gives the seconds at which a byte was there; it is asked in order, for these lines only. `gone` is asked
    before each block. The log is searched in blocks for all texts at once, and only the lines around them are cut out.
    A line longer than four blocks counts as ended.
    """
    early: dict[bytes, int] = {text.encode(): 0 for text in first}
    late = (text.encode() for text in last)
    texts = _one_of([*early, *late])
    firsts: list[Found] = []
    lasts: deque[Found] = deque(maxlen=LAST)
    offset, newlines, rest = 0, 0, b""
    while not gone():
        piece = log.read(BLOCK)
        block = rest + piece
        whole = block.rfind(b"\n") + 1 or (len(block) if len(block) > 4 * BLOCK else 0)
        counted = shown_to = 0
        for found in texts.finditer(block, 0, whole):
            if found.start() < shown_to:
                continue  # In the same line as the text before.
            start, end = _line(block, found.start(), whole)
            newlines += block.count(b"\n", counted, start)
            counted, shown_to = start, end
            text = block[start : min(end, start + LONGEST)].decode("utf-8", "replace")
            line: Found = [newlines + 1, offset + end, None, text]
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
    lines = sorted(firsts + list(lasts), key=lambda line: line[1])
    for line in lines:
        line[2] = when(line[1] - 1)
    return lines, offset, newlines


def _one_of(texts: Iterable[bytes]) -> Pattern[bytes]:
    """Matches any of the texts: those that begin alike are in one group, `S(?:tart|top)`. `re` tries the branches one
    by one, so this is three times as fast as one flat alternation of a hundred texts."""
    rests: dict[bytes, list[bytes]] = {}
    for text in texts:
        rests.setdefault(text[:1], []).append(text[1:])
    groups = (re.escape(begin) + b"(?:" + b"|".join(map(re.escape, those)) + b")" for begin, those in rests.items())
    return re.compile(b"|".join(groups))


def _line(block: bytes, at: int, whole: int) -> tuple[int, int]:
    """Where the line that holds the byte `at` begins and ends. A `\\r` of a progress bar ends one too."""
    start = block.rfind(b"\n", 0, at) + 1
    start = max(start, block.rfind(b"\r", start, at) + 1)
    end = block.find(b"\n", at, whole) + 1 or whole
    return start, block.find(b"\r", at, end) + 1 or end


_SENT_AT_ONCE = 1 << 20
"""Bytes that are redacted and sent at once."""
_LONGEST_LINE = 4 * _SENT_AT_ONCE
"""Bytes after which a line counts as ended: progress bars without newlines grow for hours."""
_LOOKED_AT = 1 << 18
"""Bytes of a log's middle that are sent or left out together."""
_MOST_TELLING = 16 << 20
"""Bytes of a log's middle that are sent at most: the first ones, as the first error is mostly the cause. A guess."""
_TELLING = re.compile(rb"Traceback \(|Error|Exception|Killed|F(?:atal|ATAL)|Segmentation|Aborted|out of memory")
"""What a block of a log's middle has where it may tell why a run failed."""


def send_log(request: Request) -> dict[str, Any]:
    """Send the log of the job `job` without secrets: all of it, or its first and last bytes, and what between them may
    tell of a failure, where it is longer than `first` + `last`.

    Events have a body. What is left out comes as events with `skipped`, its bytes, and `newlines`, how many are in it.
    Answers `size`, `changed` (when it last grew, in seconds since 1970), and `hidden`, how many secrets were taken
    out: what looks like one, and the values of secret variables of the agent and of the job's processes.
    """
    args = request.args
    job = folder.look(folder.folder_of(place.root(request), args["job"]))
    known = values_here(dict(os.environ))
    if job["elsewhere"] is None:
        for process in processes.of_job(job, processes.table()):
            known |= values_here(variables.of_process(process.pid))
    redactor = Redactor(known)
    with folder.log(job["folder"]) as log:
        size = os.fstat(log.fileno()).st_size
        first, last = args.get("first"), args.get("last")
        if first is None or last is None or size <= first + last:
            _send_redacted(request, log, size, redactor)
        else:
            _send_redacted(request, log, first, redactor)
            _send_telling(request, log, size - last, redactor)
            _send_redacted(request, log, size, redactor)
        changed = os.fstat(log.fileno()).st_mtime
    return {"size": size, "hidden": redactor.count, "changed": changed}


def _send_redacted(request: Request, log: BinaryIO, upto: int, redactor: Redactor) -> None:
    """Send what comes before the byte `upto`, to the end of its line."""
    following = Following(redactor)
    while log.tell() < upto and not request.gone():
        block = log.read(min(_SENT_AT_ONCE, upto - log.tell()))
        if log.tell() >= upto:
            block += log.readline(_LONGEST_LINE)
        shown = following.feed(block.decode("utf-8", "surrogateescape"))
        request.emit_body(shown.encode("utf-8", "surrogateescape"))
    request.emit_body(following.rest().encode("utf-8", "surrogateescape"))


def _send_telling(request: Request, log: BinaryIO, upto: int, redactor: Redactor) -> None:
    """Go on to the first line that begins behind the byte `upto`, and send what may tell of a failure: each block with
    a telling text, and the next one, in which its traceback may end."""
    sent, ahead = 0, False
    while log.tell() < upto and not request.gone():
        begin = log.tell()
        block = log.read(min(_LOOKED_AT, upto - begin)) + log.readline(_LONGEST_LINE)
        telling = sent < _MOST_TELLING and _TELLING.search(block) is not None
        if telling or ahead:
            log.seek(begin)
            # To the end of the line of its last byte, which is the block's own.
            _send_redacted(request, log, begin + len(block) - 1, redactor)
            sent += len(block)
        else:
            request.emit(skipped=len(block), newlines=block.count(b"\n"))
        ahead = telling
