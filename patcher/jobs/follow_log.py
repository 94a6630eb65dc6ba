"""Follow a job's log to its end, through cut connections, and judge what it came to.

`LogReader` reads one log once from its beginning to its end, over as many connections as it takes. `LogClock` tells
when a byte of it was written, from notes of how long the log was when. `LastingConnection` is opened anew where it is
cut. `status_of` tells what can be said of a host's jobs at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from patcher.errors import CutError, HostError, LoginError, UnreachableError
from patcher.i18n import Phrase, language, phrase, show
from patcher.jobs.control import all_jobs, tail
from patcher.jobs.job import Job, Usage, Verdict, job_of, verdict_of
from patcher.logs.lines import Line, Lines
from patcher.logs.milestones import FIRST_SEEN, LAST_SEEN, Milestones, Phase
from patcher.profiles.phase_durations import USUAL_SECONDS
from patcher.remote.channel import RefusedError
from patcher.remote.slurm import queue_of
from patcher.secrets.redacting import Following, Redactor
from patcher.terminal.printing import say
from patcher.terminal.progress import progress

if TYPE_CHECKING:
    from patcher.logs.milestones import Milestone
    from patcher.remote.channel import Answer
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host


class LogClock:
    """Tells when a byte of the log was written, from notes of the host. Bytes are asked for in order."""

    def __init__(self) -> None:
        self._notes: list[tuple[float, int]] = []
        self._upto = 0.0
        self._last = 0.0

    def note(self, times: Iterable[Sequence[float]], upto: float) -> None:
        """Take in what came with a piece of the log: `times`, each the seconds since the job's start and the bytes that
        the log had then; and `upto`, the seconds at which the piece was read.
        """
        self._notes = [(float(seconds), int(size)) for seconds, size in times]
        self._upto = upto

    def at(self, end: int) -> float:
        """Seconds since the job's start at which the log had grown to `end` bytes, as precise as the notes are."""
        while self._notes and self._notes[0][1] < end:
            del self._notes[0]
        self._last = max(self._last, self._notes[0][0] if self._notes else self._upto)
        return self._last


_PIECES = re.compile(r"[^\n]{0,16383}\n|[^\n]{1,16383}")
"""Lines with their ends; of a very long line, such as progress bars without newlines, pieces of 16 KiB."""


class LogReader:
    """Reads the log of one job, and tells `listener` what is new. It goes on at the byte `offset`.

    The connection is an argument of each call, so that after a cut the next one is read on.
    """

    def __init__(self, job: Job, host: Host, listener: JobListener, offset: int) -> None:
        self.offset = offset
        self._job = job
        self._listener = listener
        self._lines = Lines(offset)
        self._clock = LogClock()
        self._milestones = Milestones()
        self._redactor = Redactor(host.secrets.values())
        self._following = Following(self._redactor)
        self.wrote: float | None = None
        """The job's age in seconds when its log last grew, as `search` has found it."""

    def search(self, connection: Connection) -> None:
        """Take in what is in the log already. The host sends only the lines that may tell of a milestone or an error,
        so a log of gigabytes takes seconds. The listener gets milestones and lines, and no text.
        """
        searching = phrase("searching the job's log")

        def on_event(event: Mapping[str, Any], _: bytes) -> None:
            progress(searching, event["searched"], self._job.size)

        ask = connection.channel.ask
        answer = ask("job_scan", on_event=on_event, id=self._job.id, first=FIRST_SEEN, last=LAST_SEEN).values
        progress("")
        self._job = job_of(answer)
        for number, end, at, text in answer["lines"]:
            self._take_line(Line(text, number, end), at)
        self.offset = answer["offset"]
        self._lines = Lines(self.offset, answer["newlines"] + 1)
        self.wrote = answer["wrote"]

    def read(self, connection: Connection, seconds: float | None = None) -> Verdict:
        """Read on until the job has ended, or for `seconds`, and judge it."""
        ask = connection.channel.ask
        answer = ask(
            "job_follow", on_event=self._on_event, id=self._job.id, offset=self.offset, wait=True, seconds=seconds
        ).values
        self._job = job_of(answer)
        self._milestones.at = max(self._milestones.at, self._job.seconds)
        if self._job.over:
            self._take(list(self._lines.rest()))
            self._show(self._following.rest())
        return self.verdict()

    def verdict(self) -> Verdict:
        """The verdict on what has been read so far. Secrets are taken out of its texts."""
        return verdict_of(self._job, self._milestones, self.offset, self._redactor)

    def _on_event(self, event: Mapping[str, Any], body: bytes) -> None:
        if event.get("cut"):  # The log is shorter than what was read of it: it was written anew.
            self.offset, self._lines, self._clock = 0, Lines(), LogClock()
        if "queue" in event:
            self._listener.problem(queue_of(event["queue"]).sentence)
        if "now" in event:
            self._milestones.at = max(self._milestones.at, event["now"])
            self._listener.time(event["now"])
        if body:
            self._clock.note(event["times"], event["upto"])
            self.offset = event["offset"] + len(body)
            self._take(list(self._lines.feed(body)))
            if self._listener.piece is not None:
                self._listener.piece(body, event["upto"])

    def _take(self, lines: list[Line]) -> None:
        if self._listener.text is not None:
            self._show(self._following.feed("".join(line.text for line in lines)))
        for line in lines:
            self._take_line(line, self._clock.at(line.end))

    def _show(self, text: str) -> None:
        show = self._listener.text
        if show is not None:
            for piece in _PIECES.findall(text):
                show(piece)

    def _take_line(self, line: Line, at: float) -> None:
        if self._listener.line is not None:
            self._listener.line(line, at)
        for milestone in self._milestones.feed(line, at):
            self._listener.milestone(replace(milestone, usual=usual(self._job.profile, milestone.phase)))


def usual(profile: str | None, phase: Phase) -> tuple[float, float] | None:
    """How many seconds a phase usually takes in a run of this profile, from and to; None where that is not known."""
    return next((spans[phase] for name, spans in USUAL_SECONDS.items() if name == profile), None)


PAUSES = (0.5, 2.0, 5.0, 10.0, 30.0)
"""Seconds to wait before each try to reach the host again; the last value from then on. A guess: the first suit a
laptop that changes its network, the last one a host that bans an address for many logins."""
PATIENCE = 1800.0
"""Seconds for which a lost host is tried to be reached again. A guess: long enough for it to be started anew."""
STEADY = 60.0
"""Seconds after which a connection counts as good: a cut after that is a new problem, for which the patience begins
anew. A guess."""
LAST = 3
"""Last lines that are shown of a log that does not tell why a job failed. A guess: what fits below the verdict."""


def _nothing(_: object) -> None:
    pass


def report_problem(problem: Phrase) -> None:
    """Print a problem to standard error."""
    say(show(problem, language()), err=True)


@dataclass(frozen=True, slots=True)
class JobListener:
    """Functions that are called with what is new of a job."""

    text: Callable[[str], object] | None = None
    """Lines with their ends, without secrets."""
    milestone: Callable[[Milestone], object] = _nothing
    """A phase or a step that was reached."""
    time: Callable[[float], object] = _nothing
    """The job's age in seconds, now and then."""
    problem: Callable[[Phrase], object] = report_problem
    """That the connection is lost, or why the job waits in a queue."""
    line: Callable[[Line, float], object] | None = None
    """A line with its secrets, and the job's age when it was written."""
    piece: Callable[[bytes, float], object] | None = None
    """The bytes of the log as they come, with their secrets, and the job's age when they were read."""


def follow(
    reconnect: Callable[[], Connection],
    connection: Connection,
    job: Job,
    listener: JobListener,
    *,
    on_end: Callable[[Connection, Verdict], object] | None = None,
    offset: int = 0,
) -> Verdict:
    """Read the job's log until the job has ended, and judge it.

    Where the connection is cut, `reconnect` opens another with the tree open on it, and reading goes on at the byte
    where it stopped. For a listener to texts the log is read from the byte `offset` on; for any other one the part that
    is there already is searched on the host. `on_end` gets the verdict, and a connection on which it may ask more; it
    is called again where that is cut; what the host refuses it is told as a problem, and the verdict stands. An
    interrupt leaves the job running: the verdict is then `running`.

    Raises what `LastingConnection.do` raises, and RefusedError where the job is not there.
    """
    host = connection.host
    reading = LogReader(job, host, listener, offset)
    back = f"uky-patch job attach {host.words} --id {job.id}"
    lasting = LastingConnection(reconnect, connection, listener.problem, back=back)
    try:
        if listener.text is None:
            lasting.do(reading.search)
        verdict = lasting.do(lambda link: _with_last_words(link, reading.read(link)), lambda: reading.offset)
        if on_end is not None:
            try:
                lasting.do(lambda link: on_end(link, verdict))
            except RefusedError as error:
                listener.problem(phrase("{title}: {cause}", title=error.title, cause=error.cause))
        return verdict
    except KeyboardInterrupt:
        return reading.verdict()


T = TypeVar("T")


class LastingConnection:
    """A connection that is opened anew where it is cut. `link` is the present one, None after a cut."""

    def __init__(
        self,
        reconnect: Callable[[], Connection],
        connection: Connection,
        on_problem: Callable[[Phrase], object] = report_problem,
        *,
        back: str = "",
    ) -> None:
        """`back` is the command that goes on with the same work, for the error when the host is given up."""
        self._reconnect = reconnect
        self.link: Connection | None = connection
        self._host: Host = connection.host
        self._on_problem = on_problem
        self._back = back

    def do(self, work: Callable[[Connection], T], progress: Callable[[], int] = lambda: 0) -> T:
        """What `work` gives, which is called again with a new connection after each cut.

        `progress` tells how far the work is; where that has grown, the patience with the host begins anew.

        Raises:
            UnreachableError: the host was not reached again for `PATIENCE` seconds.
            LoginError: the host lets nobody in, so waiting does not help.
            HostError: what else `work` or a new connection raises.
        """
        since, tries, reported = time.monotonic(), 0, ""
        while True:
            before, begun, lost = progress(), time.monotonic(), self.link is None
            try:
                link = self.link = self.link or self._reconnect()
                if lost:
                    self._on_problem(phrase("{host}: reached again", host=self._host.name))
                return work(link)
            except HostError as error:
                if not _may_pass(error, reconnecting=self.link is None):
                    raise
                now = time.monotonic()
                if progress() > before or (self.link is not None and now - begun > STEADY):
                    since, tries, reported = now, 0, ""
                self.link = None
                if now - since >= PATIENCE:
                    raise self._given_up(error) from error
                if str(error.title) != reported:
                    reported = str(error.title)
                    self._on_problem(self._waiting(error, PATIENCE - (now - since)))
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


def _may_pass(error: HostError, *, reconnecting: bool) -> bool:
    """Whether an error may pass by itself: there is no network, or the machine is starting.

    `reconnecting`: while a new connection is made, anything but a refusal may pass. A machine that is starting may lack
    its home folder, and with it the Python there.
    """
    if isinstance(error, CutError | UnreachableError):
        return True
    return reconnecting and not isinstance(error, LoginError | RefusedError)


def verdict_now(connection: Connection, job: Job) -> Verdict:
    """The verdict on a job as it is now. Nothing is waited for."""
    reading = LogReader(job, connection.host, JobListener(), 0)
    reading.search(connection)
    return _with_last_words(connection, reading.verdict())


def _with_last_words(connection: Connection, verdict: Verdict) -> Verdict:
    """The verdict with the log's last lines, where a job has failed and no line of its log tells why."""
    if verdict.kind not in ("failed", "lost") or verdict.telling is not None or verdict.job.no_gpu:
        return verdict
    text = tail(connection, verdict.job.id, LAST).text
    words = tuple(phrase("the log ends: {text}", text=line) for line in text.splitlines() if line.strip())
    return replace(verdict, lines=(*verdict.lines, *words))


@dataclass(frozen=True, slots=True)
class Status:
    """One job with what it uses, the other jobs of its tree, and the facts of the configuration that worked last."""

    verdict: Verdict
    usage: Usage
    others: tuple[Job, ...]
    working: Mapping[str, Any] | None


def status_of(connection: Connection, name: str | None) -> Status:
    """The status of the job `name`, the newest where none is named. Raises RefusedError where there is none."""
    answer = connection.channel.ask("job_look", id=name).values
    job = job_of(answer)
    others = tuple(other for other in all_jobs(connection) if other.id != job.id)
    usage = Usage(answer["processes"], answer["gpus"])
    return Status(verdict_now(connection, job), usage, others, answer["working"])
