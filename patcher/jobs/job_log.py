"""The log of a host's job as a file that can be read here, and its diagnosis.

The diagnosis is made for the versions on that host. Its verdict gives way to what the host knows better: whether the
job runs, and its exit code.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from patcher.diagnose.diagnose import add_comparison, judge_logs, look_up, require_good_log, silence_limit
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.ended import add_signal, how_ended, last_words_tell, signal_of, silent_end
from patcher.diagnose.evidence import LogOfRun
from patcher.diagnose.log_files import RotatedLog
from patcher.diagnose.scanner import Scanner
from patcher.errors import UkyError
from patcher.i18n import Phrase, phrase
from patcher.jobs.job import job_of
from patcher.remote.link import linked
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patcher.diagnose.diagnosis import Verdict
    from patcher.diagnose.evidence import Evidence
    from patcher.jobs.job import Job
    from patcher.jobs.job import Verdict as JobVerdict
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host
    from patcher.session.session import Session

FIRST, LAST = 8 << 20, 56 << 20
"""Bytes of a host's log that are fetched for a diagnosis: of its beginning, with the command and the settings, and of
its end, mostly with the failure. The split is a guess; 64 MiB take some six seconds over a line of 100 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log that can be read here. `name` is what a report calls it; sizes are bytes."""

    path: Path
    name: str
    size: int
    """Of the whole log, where it lies."""
    skipped: int = 0
    """Bytes of its middle that were not fetched: no error was seen in them, or too much looks like one. Empty lines
    stand for their lines, so that line numbers hold."""
    hidden: int = 0
    """How many secrets the host has taken out."""


@contextmanager
def job_log(connection: Connection, job: Mapping[str, Any], *, whole: bool = False) -> Iterator[Log]:
    """The log of the `job` that the verb `job_look` has told of: the file itself for this machine, else a copy that
    lasts until the end of the block.

    A log of more than FIRST + LAST bytes comes without most of its middle, unless `whole`. Raises HostError where the
    connection ends, OSError where there is no room for a copy.
    """
    if connection.host.here:
        path = Path(job["folder"]) / "log"
        yield Log(path, "log", path.stat().st_size)
        return
    state: Mapping[str, Any] = {}
    done = skipped = 0

    def fetch(aside: IO[bytes]) -> float | None:
        nonlocal state

        def on_event(event: Mapping[str, Any], body: bytes) -> None:
            nonlocal done, skipped
            aside.write(body or b"\n" * event.get("newlines", 0))
            skipped += event.get("skipped", 0)
            done += len(body) + event.get("skipped", 0)
            progress(phrase("fetching the job's log"), done, job["size"])

        first, last = (None, None) if whole else (FIRST, LAST)
        answer = connection.channel.ask("job_log", on_event=on_event, job=job["id"], first=first, last=last)
        progress("")
        state = answer.values
        return state.get("changed")

    with unnamed_copy(fetch) as path:
        yield Log(path, "log", state["size"], skipped, state["hidden"])


@contextmanager
def unnamed_copy(fill: Callable[[IO[bytes]], float | None]) -> Iterator[Path]:
    """The path below /proc of a file that `fill` writes. `fill` returns when the text last changed, None for now.

    The file has no name on the disk, so nothing of it is left however this process ends. It is closed for writing
    before it is read, because a diagnosis takes a log that a process has open for writing for one that still grows.
    """
    with tempfile.TemporaryFile() as aside:
        changed = fill(aside)
        aside.flush()
        reading = Path(f"/proc/self/fd/{aside.fileno()}").open("rb")  # noqa: SIM115
    with reading:
        if changed is not None:
            os.utime(reading.fileno(), (changed, changed))
        yield Path(f"/proc/self/fd/{reading.fileno()}")


@dataclass(frozen=True, slots=True)
class DiagnosedJob:
    """A job, and the diagnosis of its log."""

    job: Job
    diagnosis: Diagnosis


def diagnose_job(
    session: Session,
    host: Host,
    name: str | None,
    against: str | None = None,
    *,
    whole: bool = False,
    fetching: bool = True,
) -> DiagnosedJob:
    """The job `name` of a host, the newest where none is named, and the diagnosis of its log.

    `against` is the path of a good run's log, from which the diagnosis then names the differences. `whole`: whether all
    of a long log is fetched. `fetching`: whether releases of a package may be downloaded, to look in them for a name
    that it lacks.

    Raises HostError where the host cannot be reached, RefusedError where it has no such job, UsageError where there is
    no tree here whose jobs could be meant.
    """
    with linked(host, session.tree.root) as link:
        connection, _ = link.open()
        state = connection.channel.ask("job_look", id=name).values
        job = job_of(state)
        require_good_log(session, Scanner(session.symptoms), job.log, against)
        versions: Mapping[str, str] | None = None if host.here else state.get("facts", {}).get("versions", {})
        with job_log(connection, state, whole=whole) as log:
            where = job.log if host.here else f"{host.name}:{job.log}"
            found = judge_job(session, state, log, where, versions)
            difference = add_comparison(Diagnosis("running", None), [RotatedLog((str(log.path),))], against)
    found = look_up(session, found) if fetching else found
    return DiagnosedJob(job, replace(found, missing=difference.missing, added=difference.added))


def judge_job(
    session: Session, state: Mapping[str, Any], log: Log, where: str, versions: Mapping[str, str] | None
) -> Diagnosis:
    """The diagnosis of the log of the job that the verb `job_look` has told of as `state`.

    `where` is what its findings call the log, `versions` are those on the job's host, None for this machine. Raises
    OSError where the log cannot be read.
    """
    job, scanner = job_of(state), Scanner(session.symptoms)
    with log.path.open("rb") as stream:
        evidence = scanner.scan([(where, stream)])
    quiet = job.seconds - _wrote(state, log.path)
    found = judge_logs(
        session,
        [LogOfRun(evidence, 0.0)],
        installed=versions,
        ended=_failed(job, evidence) or None,
        silent=not job.over and quiet > silence_limit(evidence.phase),
        last_words=last_words_tell(job.code, stopped=job.state == "stopped"),
    )
    verdict = _verdict(job, found)
    ended = (silent_end(found),) if job.over and verdict == "failed" and found.root is None else ()
    if job.state == "ended":
        found = add_signal(found, session.symptoms, job.code, where)
    notes = (_state_message(job), *ended, *(job.full_disk if job.over else ()), *_left_out(log), *scanner.notes)
    return replace(found, verdict=verdict, notes=notes, size=log.size, blank=False)


def _left_out(log: Log) -> tuple[Phrase, ...]:
    if not log.skipped:
        return ()
    text = "{size} MiB in the middle of the log were not looked at: --whole-log fetches all of it"
    return (phrase(text, size=max(1, log.skipped >> 20)),)


def why_failed(session: Session, host: Host, verdict: JobVerdict) -> Diagnosis | None:
    """The diagnosis of a job that has failed, for the end of the command that followed it.

    None for a job that has not, and where its log cannot be had any more: the verdict is shown without it then.
    """
    if verdict.kind not in ("failed", "lost"):
        return None
    with suppress(UkyError, OSError):
        return diagnose_job(session, host, verdict.job.id, fetching=False).diagnosis
    return None


def _wrote(state: Mapping[str, object], log: Path) -> float:
    """The job's age when its log last grew."""
    started = state.get("started")
    return max(0.0, log.stat().st_mtime - started) if isinstance(started, int | float) else 0.0


def _failed(job: Job, evidence: Evidence) -> bool:
    """Whether it has ended badly. Without an exit code, its log tells whether it came to its end."""
    if not job.over:
        return False
    return job.code != 0 if job.code is not None else evidence.finished is None


def _verdict(job: Job, found: Diagnosis) -> Verdict:
    """What the log says, unless its host knows better whether the job runs and how it ended."""
    if not job.over:
        return found.verdict if found.verdict in ("stalled", "failed") else "running"
    if job.code == 0 and job.state == "ended":
        return "ok" if found.verdict in ("running", "stalled") else found.verdict
    return "ok" if job.code is None and found.verdict == "ok" else "failed"


def _state_message(job: Job) -> Phrase:
    """One sentence on the job's state, as its host tells it."""
    seconds = f"{job.seconds:.0f}"
    if not job.over:
        return phrase("job {id} has run for {seconds} s", id=job.id, seconds=seconds)
    if job.state == "stopped":
        return phrase("job {id} was stopped after {seconds} s", id=job.id, seconds=seconds)
    if job.code is None:
        return phrase("job {id} is gone, and nobody noted its exit code", id=job.id)
    if signal_of(job.code) is not None:
        return phrase("job {id} after {seconds} s: {how}", id=job.id, seconds=seconds, how=how_ended(job.code))
    return phrase("job {id} ended with exit code {code} after {seconds} s", id=job.id, code=job.code, seconds=seconds)
