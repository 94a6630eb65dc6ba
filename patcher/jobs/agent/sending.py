"""A job's log as it is sent: whole, or its beginning and its end, without the secrets that are known here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from patcher.jobs.agent import folder, processes
from patcher.remote.agent import place, variables
from patcher.secrets.known import values_here
from patcher.secrets.redacting import Following, Redactor

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

BLOCK = 1 << 20
LONGEST = 4 * BLOCK
"""A line that is longer is cut: progress bars without newlines grow for hours."""


def send_log(request: Request) -> dict[str, Any]:
    """Send the log of the job `job`: all of it, or the first and last bytes where it is longer than `first` + `last`.

    Events have a body. What is left out comes as one event with `skipped`: bytes, and `newlines` in them. Answers
    `size`, `changed`: when it last grew, and `hidden`: how many secrets were taken out. Raises Refusal.
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
            _send(request, log, size, redactor)
        else:
            _send(request, log, first, redactor)
            begin = log.tell()
            newlines = _skip(request, log, size - last)
            request.emit(skipped=log.tell() - begin, newlines=newlines)
            _send(request, log, size, redactor)
        changed = os.fstat(log.fileno()).st_mtime
    return {"size": size, "hidden": redactor.count, "changed": changed}


def _send(request: Request, log: BinaryIO, upto: int, redactor: Redactor) -> None:
    """Send what comes before the byte `upto`, to the end of its line."""
    following = Following(redactor)
    while log.tell() < upto and not request.gone():
        block = log.read(min(BLOCK, upto - log.tell()))
        if log.tell() >= upto:
            block += log.readline(LONGEST)
        shown = following.feed(block.decode("utf-8", "surrogateescape"))
        request.emit_body(shown.encode("utf-8", "surrogateescape"))
    request.emit_body(following.rest().encode("utf-8", "surrogateescape"))


def _skip(request: Request, log: BinaryIO, upto: int) -> int:
    """Go on to the first line that begins behind the byte `upto`. Returns how many newlines were passed."""
    count = 0
    while log.tell() < upto and not request.gone():
        count += log.read(min(BLOCK, upto - log.tell())).count(b"\n")
    return count + log.readline(LONGEST).count(b"\n")
