"""Follow a job's log to its end, through cut connections, and judge what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from patcher.errors import CutError, HostError, LoginError, UnreachableError
from patcher.i18n import Phrase, language, phrase, show
from patcher.jobs.reading import Reading
from patcher.jobs.starting import tail
from patcher.remote.channel import RefusedError
from patcher.terminal.printing import say

if TYPE_CHECKING:
    from patcher.jobs.model import Job, Verdict
    from patcher.logs.lines import Line
    from patcher.logs.milestones import Milestone
    from patcher.remote.channel import Answer
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host

PAUSES = (0.5, 2.0, 5.0, 10.0, 30.0)
"""Seconds before each further try to reach the host again; the last one from then on."""
PATIENCE = 1800.0
"""Seconds for which a host that was there is tried to be reached again."""
STEADY = 60.0
"""Seconds after which a connection counts as a good one: what cuts it later is a new trouble, with patience anew."""
LAST = 3
"""Lines that are shown of a log that does not tell why a job failed."""


def _nothing(_: object) -> None:
    pass


def tell(told: Phrase) -> None:
    say(show(told, language()), err=True)


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
    trouble: Callable[[Phrase], object] = tell
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
    on_trouble: Callable[[Phrase], object] = tell,
    on_end: Callable[[Connection, Verdict], object] | None = None,
    offset: int | None = None,
) -> Verdict:
    """Read the job's log until the job has ended, and judge it.

    Where the connection is cut, `reconnect` opens another with the tree open on it, and reading goes on at the byte
    where it stopped. `on_text` gets lines with their ends, without secrets, from the byte `offset` on; without it what
    is there already is searched on the host. `on_time` gets the job's age now and then, `on_end` the verdict and a
    connection on which more can be asked; it is called again where that is cut. An interrupt leaves the job running:
    the verdict is then `running`.

    Raises what `Lasting.do` raises, and RefusedError where the job is not there.
    """
    host = connection.host
    reading = Reading(job, host, Ears(on_text, on_milestone, on_time, on_trouble), offset or 0)
    lasting = Lasting(reconnect, connection, on_trouble, back=f"uky-patch job attach {host.words} --id {job.id}")
    try:
        if on_text is None:
            lasting.do(reading.search)
        verdict = lasting.do(lambda link: _with_last_words(link, reading.read(link)), lambda: reading.offset)
        if on_end is not None:
            lasting.do(lambda link: on_end(link, verdict))
        return verdict
    except KeyboardInterrupt:
        return reading.verdict()


T = TypeVar("T")


class Lasting:
    """A connection that is opened anew where it is cut: `link`, None while it is."""

    def __init__(
        self,
        reconnect: Callable[[], Connection],
        connection: Connection,
        on_trouble: Callable[[Phrase], object] = tell,
        *,
        back: str = "",
    ) -> None:
        """`back`: the command that goes on with the same, for when the host is not waited for any longer."""
        self._reconnect = reconnect
        self.link: Connection | None = connection
        self._host: Host = connection.host
        self._on_trouble = on_trouble
        self._back = back

    def do(self, work: Callable[[Connection], T], progress: Callable[[], int] = lambda: 0) -> T:
        """What `work` gives; it is begun again after each cut. Where `progress` grows, patience begins anew.

        Raises:
            UnreachableError: the host was not reached again for `PATIENCE` seconds.
            LoginError: it is there and lets nobody in, so that waiting helps nothing.
            HostError: what else `work` or a new connection raises.
        """
        since, tries, told = time.monotonic(), 0, ""
        while True:
            before, begun, lost = progress(), time.monotonic(), self.link is None
            try:
                link = self.link = self.link or self._reconnect()
                if lost:
                    self._on_trouble(phrase("{host}: reached again", host=self._host.name))
                return work(link)
            except HostError as error:
                if not _passes(error, reconnecting=self.link is None):
                    raise
                now = time.monotonic()
                if progress() > before or (self.link is not None and now - begun > STEADY):
                    since, tries, told = now, 0, ""
                self.link = None
                if now - since >= PATIENCE:
                    raise self._given_up(error) from error
                if str(error.title) != told:
                    told = str(error.title)
                    self._on_trouble(self._waiting(error, PATIENCE - (now - since)))
                time.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1

    def ask(self, verb: str, **args: Any) -> Answer:
        """The answer to one request. Raises as `do` does."""
        return self.do(lambda link: link.channel.ask(verb, **args))

    def _waiting(self, error: HostError, seconds: float) -> Phrase:
        text = "{title}; the job does not need this connection; trying for {minutes} min to reach it again"
        return phrase(text, title=error.title, minutes=f"{seconds / 60:.0f}")

    def _given_up(self, error: HostError) -> UnreachableError:
        advice = phrase("The job does not need this connection. To go on with it: {command}", command=self._back)
        return UnreachableError(
            phrase("{host}: not reached again for {minutes} min", host=self._host.name, minutes=f"{PATIENCE / 60:.0f}"),
            cause=error.title,
            advice=advice if self._back else error.advice,
        )


def _passes(error: HostError, *, reconnecting: bool) -> bool:
    """Whether what is wrong may be over by itself: no sshd, no network, a machine that starts.

    While a new connection is made that is anything but a refusal: a host that starts may lack its home or its Python.
    """
    if isinstance(error, CutError | UnreachableError):
        return True
    return reconnecting and not isinstance(error, LoginError | RefusedError)


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
