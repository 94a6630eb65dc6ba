"""The log that a report is about, as a file that can be read here, and the parts of it that are packed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from patcher.bundle import excerpts
from patcher.bundle.model import Asked, Section
from patcher.i18n import phrase

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis
    from patcher.remote.connection import Connection

FIRST, LAST = 8 << 20, 56 << 20
"""Bytes of a host's log that are fetched to be diagnosed: of its beginning and of its end."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log that can be read here. `spot` is the file, `said` what it is called in the report."""

    spot: Path
    said: str
    size: int
    skipped: int = 0
    """Bytes in its middle that were not fetched."""


@contextmanager
def opened(connection: Connection, asked: Asked, state: Mapping[str, Any]) -> Iterator[tuple[Log | None, int]]:
    """The log as a file that can be read here, None where there is none; and how many secrets were taken out already.

    What has to be put down for it has no name, so that nothing is left of it whatever happens.
    """
    job: Mapping[str, Any] = state["job"] or {}
    if asked.log is not None and asked.log != "-":
        path = Path(asked.log)
        yield Log(path, asked.log, path.stat().st_size), 0
    elif asked.log is None and not job:
        yield None, 0
    elif asked.log is None and connection.host.here:
        path = Path(job["folder"]) / "log"
        yield Log(path, "log", path.stat().st_size), 0
    else:
        with tempfile.TemporaryFile() as aside:
            if asked.log == "-":
                shutil.copyfileobj(sys.stdin.buffer, aside, 1 << 20)
                told: Mapping[str, Any] = {"size": aside.tell(), "hidden": 0}
                skipped = 0
            else:
                told, skipped = _fetch(connection, job["id"], aside, whole=asked.whole_log)
            reading = Path(f"/proc/self/fd/{aside.fileno()}").open("rb")  # noqa: SIM115
        with reading:  # Nobody writes to it any more: it is seen to stand still.
            if told.get("changed"):
                os.utime(reading.fileno(), (told["changed"], told["changed"]))
            path = Path(f"/proc/self/fd/{reading.fileno()}")
            yield Log(path, asked.log or "log", told["size"], skipped), told["hidden"]


def _fetch(connection: Connection, job: str, aside: IO[bytes], *, whole: bool) -> tuple[Mapping[str, Any], int]:
    """A host's log, or its beginning and end: empty lines stand for what is between, so that numbers hold."""
    skipped = 0

    def hear(event: Mapping[str, Any], body: bytes) -> None:
        nonlocal skipped
        aside.write(body)
        if "skipped" in event:
            skipped = event["skipped"]
            aside.write(b"\n" * event["newlines"])

    first, last = (None, None) if whole else (FIRST, LAST)
    told = connection.channel.ask("bundle_log", on_event=hear, job=job, first=first, last=last)
    return told.values, skipped


def sections_of(log: Log, diagnosis: Diagnosis | None, asked: Asked, facts: dict[str, Any]) -> list[Section]:
    """The end, what surrounds the root, and the whole where it is wanted."""
    root = diagnosis.root if diagnosis is not None else None
    spot = Path(root.place.file) if root is not None else log.spot
    if spot.is_dir():
        spot = _newest(spot)
    last = excerpts.tail(spot) if spot.is_file() else ""
    sections = [Section("log/tail.txt", phrase("the last {count} lines", count=excerpts.LAST), last)]
    facts["excerpt"], facts["first"] = last, "…"
    if root is not None and spot.is_file():
        text, first = excerpts.around(spot, root.place.number)
        holds = phrase("the lines around the root, from line {first} on", first=first)
        sections.append(Section("log/root.txt", holds, text))
        facts["excerpt"], facts["first"] = text, first
    if asked.whole_log and spot.is_file():
        sections.append(Section("log/whole.txt", phrase("the whole log, without secrets"), spot))
    return sections


def _newest(folder: Path) -> Path:
    """The log of a folder that was written to last."""
    logs = [one for one in folder.rglob("*") if one.suffix in (".log", ".out", ".err") and one.is_file()]
    return max(logs, key=lambda one: one.stat().st_mtime, default=folder)


def command_in(log: Log | None) -> str:
    return excerpts.command_in(log.spot) if log is not None and log.spot.is_file() else ""
