"""Follow a job's log to its end, through cut connections, and judge what it came to."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from patcher.errors import CutError, HostError
from patcher.jobs.reading import Reading
from patcher.jobs.starting import tail
from patcher.language import Phrase, language, phrase, show

if TYPE_CHECKING:
    from patcher.diagnosis.lines import Line
    from patcher.diagnosis.milestones import Milestone
    from patcher.hosts.connection import Connection
    from patcher.jobs.model import Job, Verdict

PAUSES = (0.5, 2.0, 5.0, 10.0, 30.0)
"""Seconds before each further try to reach the host again; the last one from then on."""
PATIENCE = 1800.0
"""Seconds for which a host that was there is tried to be reached again."""
LAST = 3
"""Lines that are shown of a log that does not tell why a job failed."""


def _nothing(_: object) -> None:
    pass


def _tell(told: Phrase) -> None:
    print(show(told, language()), file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Ears:
    """Who hears what of a job.

    `text`: lines with their ends, without secrets; `milestone`: phases and steps; `time`: the job's age now and then;
    `trouble`: that the connection is lost; `line`: lines as they are, with the job's age at each;
    `piece`: the bytes that they come in, with its age.
    """

    text: Callable[[str], object] | None = None
    milestone: Callable[[Milestone], object] = _nothing
    time: Callable[[float], object] = _nothing
    trouble: Callable[[Phrase], object] = _tell
    line: Callable[[Line, float], object] | None = None
    piece: Callable[[bytes, float], object] | None = None


def follow(
    reconnect: Callable[[], Connection],
    connection: Connection,
    job: Job,
    *,
    on_text: Callable[[str], object] | None = None,
    on_milestone: Callable[[Milestone], object] = _nothing,
    on_time: Callable[[float], object] = _nothing,
    on_trouble: Callable[[Phrase], object] = _tell,
    offset: int | None = None,
) -> Verdict:
    """Read the job's log until the job has ended, and judge it.

    Where the connection is cut, `reconnect` opens another with the tree open on it, and reading goes on at the byte
    where it stopped. `on_text` gets lines with their ends, without secrets, from the byte `offset` on; without it what
    is there already is searched on the host. `on_time` gets the job's age now and then. An interrupt leaves the job
    running: the verdict is then `running`.

    Raises CutError or HostError where the host cannot be reached again, RefusedError where the job is not there.
    """
    reading = Reading(job, connection.host, Ears(on_text, on_milestone, on_time, on_trouble), offset or 0)
    lasting = Lasting(reconnect, connection, on_trouble)
    try:
        if on_text is None:
            lasting.do(reading.search)
        return lasting.do(lambda link: _with_last_words(link, reading.read(link)), lambda: reading.offset)
    except KeyboardInterrupt:
        return reading.verdict()


T = TypeVar("T")


class Lasting:
    """A connection that is opened anew where it is cut: `link`, None while it is."""

    def __init__(
        self,
        reconnect: Callable[[], Connection],
        connection: Connection,
        on_trouble: Callable[[Phrase], object] = _tell,
    ) -> None:
        self._reconnect = reconnect
        self.link: Connection | None = connection
        self._on_trouble = on_trouble

    def do(self, work: Callable[[Connection], T], progress: Callable[[], int] = lambda: 0) -> T:
        """What `work` gives; it is begun again after each cut. Where `progress` grows, patience begins anew.

        Raises CutError or HostError where the host cannot be reached again, and what else `work` raises.
        """
        since, tries = time.monotonic(), 0
        while True:
            before = progress()
            try:
                self.link = self.link or self._reconnect()
                return work(self.link)
            except HostError as error:
                if not isinstance(error, CutError) and (self.link is not None or type(error) is not HostError):
                    raise
                self.link = None
                if progress() > before:
                    since, tries = time.monotonic(), 0
                if time.monotonic() - since > PATIENCE:
                    raise
                pause = PAUSES[min(tries, len(PAUSES) - 1)]
                told = "{title}; the job goes on; trying again in {seconds} s"
                self._on_trouble(phrase(told, title=error.title, seconds=f"{pause:g}"))
                tries += 1
                time.sleep(pause)


def verdict_now(connection: Connection, job: Job) -> Verdict:
    """What can be said of a job now, from the lines of its log that matter; nothing is waited for."""
    reading = Reading(job, connection.host, Ears(), 0)
    reading.search(connection)
    return _with_last_words(connection, reading.verdict())


def _with_last_words(connection: Connection, verdict: Verdict) -> Verdict:
    """Where no line of the log tells why it failed, its last ones are shown."""
    if verdict.kind not in ("failed", "lost") or verdict.telling is not None:
        return verdict
    text = tail(connection, verdict.job.id, LAST)[0]
    words = tuple(phrase("the log ends: {text}", text=line) for line in text.splitlines() if line.strip())
    return replace(verdict, lines=(*verdict.lines, *words))
