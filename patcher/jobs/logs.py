"""The log of a host's job, as a file that can be read here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patcher.remote.connection import Connection

FIRST, LAST = 8 << 20, 56 << 20
"""Bytes of a host's log that are fetched to be diagnosed: of its beginning, which has the command and the settings, and
of its end, which has the failure. 64 MiB take some six seconds over a line of 100 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log that can be read here. `name` is what it is called in a report; sizes in bytes."""

    path: Path
    name: str
    size: int
    """Of the whole log, where it lies."""
    skipped: int = 0
    """In its middle, not fetched. Empty lines stand for it, so that line numbers hold."""
    hidden: int = 0
    """Secrets that its host took out before it sent it."""


@contextmanager
def job_log(connection: Connection, job: Mapping[str, Any], *, whole: bool = False) -> Iterator[Log]:
    """The log of a job that `job_look` told of: its file here, or a copy of a host's that lasts as long as this.

    A log above FIRST + LAST bytes comes without its middle, unless `whole`. Raises HostError where the connection ends,
    OSError where there is no room for a copy.
    """
    if connection.host.here:
        path = Path(job["folder"]) / "log"
        yield Log(path, "log", path.stat().st_size)
        return
    told: Mapping[str, Any] = {}
    skipped = 0

    def fetch(aside: IO[bytes]) -> float | None:
        nonlocal told

        def on_event(event: Mapping[str, Any], body: bytes) -> None:
            nonlocal skipped
            aside.write(body)
            if "skipped" in event:
                skipped = event["skipped"]
                aside.write(b"\n" * event["newlines"])

        first, last = (None, None) if whole else (FIRST, LAST)
        answer = connection.channel.ask("job_log", on_event=on_event, job=job["id"], first=first, last=last)
        told = answer.values
        return told.get("changed")

    with unnamed_copy(fetch) as path:
        yield Log(path, "log", told["size"], skipped, told["hidden"])


@contextmanager
def unnamed_copy(fill: Callable[[IO[bytes]], float | None]) -> Iterator[Path]:
    """A file that `fill` writes, by its path below /proc. `fill` returns when the text last changed, None for now.

    The file has no name on the disk, so nothing is left of it however this process ends. It is closed for writing
    before it is read: a diagnosis takes a log that somebody still writes for one that grows.
    """
    with tempfile.TemporaryFile() as aside:
        changed = fill(aside)
        aside.flush()
        reading = Path(f"/proc/self/fd/{aside.fileno()}").open("rb")  # noqa: SIM115
    with reading:
        if changed is not None:
            os.utime(reading.fileno(), (changed, changed))
        yield Path(f"/proc/self/fd/{reading.fileno()}")
