"""`uky-patch job`: the jobs of a host, looked at, followed and stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import CommandGroup
from patcher.cli.hosts import ordered_host, reach_options
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.session.session import Session

_MOST_TEXT = 1 << 20
"""Characters of a line that are kept for JSON: a single line without an end does not fill the memory."""


@click.group("job", cls=CommandGroup)
def command() -> None:
    """Look at a job on a host, read its log, follow it, stop it. HOST may be "here"."""


_HOST = click.argument("host", metavar="HOST", shell_complete=host_names)
_ID = click.option("--id", "job", metavar="ID", help="Which job, by its id or an end of it; the newest by default.")


@command.command("status")
@_HOST
@_ID
@reach_options
@with_session
def status(session: Session, /, host: str, job: str | None, **given: Any) -> int:
    """What became of it: phases, steps, processor and GPUs, Ray's dashboard, and the other jobs there."""
    from patcher.jobs.follow_log import status_of
    from patcher.remote.link import linked
    from patcher.report.jobs import job_status_report
    from patcher.terminal.document import print_report

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        print_report(job_status_report(machine, status_of(link.open()[0], job), session.output))
    return ExitCode.CLEAN


@command.command("logs")
@_HOST
@_ID
@click.option("-f", "--follow", is_flag=True, help="Go on as it grows, until the job has ended.")
@click.option("--lines", type=click.IntRange(min=0), default=50, metavar="N", help="How many of the last lines.")
@reach_options
@with_session
def logs(session: Session, /, host: str, job: str | None, follow: bool, lines: int, **given: Any) -> int:
    """The last lines of its log; with -f also those to come. In JSON it is the last lines once it has ended."""
    from patcher import jobs
    from patcher.jobs.follow_log import verdict_now
    from patcher.remote.link import linked
    from patcher.report.jobs import cut_report, followed_report, log_report
    from patcher.terminal.document import print_report

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        connection, _ = link.open()
        text, found, offset, cut = jobs.tail(connection, job, lines, whole=follow)
        last = _LastLines(lines) if session.output == "json" else None
        on_text = show_log_text if last is None else last.add
        on_text(text)
        print_report(cut_report(text) if cut else ())
        verdict = None
        if follow:
            verdict = jobs.follow(link.reconnect, connection, found, jobs.JobListener(text=on_text), offset=offset)
            if verdict.job.over:
                # Only the end of the log was followed: which phase the job was in, all of it tells.
                verdict = verdict_now(link.connection, verdict.job)
            print_report(followed_report(machine, verdict))
        if last is not None:
            print_report(log_report(machine, found, last.text, verdict, cut=cut or last.cut))
    return ExitCode.INTERRUPTED if verdict is not None and verdict.kind == "running" else ExitCode.CLEAN


@command.command("attach")
@_HOST
@_ID
@reach_options
@with_session
def attach(session: Session, /, host: str, job: str | None, **given: Any) -> int:
    """Follow it by its phases until its verdict. Ctrl-C leaves it running."""
    from patcher import jobs
    from patcher.jobs.job_log import why_failed
    from patcher.jobs.run import follow_and_keep
    from patcher.remote.link import linked
    from patcher.report.jobs import exit_code, started_report, verdict_report
    from patcher.terminal.document import print_report
    from patcher.terminal.live import Live

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        found, _ = jobs.look(link.open()[0], job)
        print_report(started_report(machine, found))
        live = Live()
        listener = jobs.JobListener(milestone=live.milestone, time=live.time, problem=live.problem)
        verdict = follow_and_keep(link, found, listener, keep=not found.over)
        live.end()
    why = why_failed(session, machine, verdict)
    print_report(verdict_report(machine, verdict, session.output, why))
    return exit_code(verdict)


@command.command("stop")
@_HOST
@_ID
@click.option("--grace", type=click.FloatRange(min=0), default=20.0, metavar="S", help="Seconds to end by itself.")
@reach_options
@with_session
def stop(session: Session, /, host: str, job: str | None, grace: float, **given: Any) -> int:
    """Stop it: all of its processes, Ray's included, and no other."""
    from patcher import jobs
    from patcher.remote.link import linked
    from patcher.report.jobs import stopped_report, stopping_report
    from patcher.terminal.document import print_report

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:

        def on_list(processes: Sequence[Mapping[str, Any]]) -> None:
            print_report(stopping_report(processes))

        connection = link.open()[0]
        stopped = jobs.stop(connection, job, grace=grace, on_list=on_list)
        # The newest one may have ended before an older one that it was started beside.
        running = [one for one in jobs.all_jobs(connection) if not one.over] if stopped.had_ended and not job else []
    print_report(stopped_report(machine, stopped, session.output, running))
    return ExitCode.FINDINGS if stopped.left or running else ExitCode.CLEAN


def show_log_text(text: str) -> None:
    """The log's own text on standard output; on a terminal what would steer it is shown, colours apart.

    Raises ReaderGoneError where nobody reads it any more: a log that is followed has no end of its own.
    """
    from patcher.terminal.output import require_reader
    from patcher.terminal.printing import show_job_log

    show_job_log(text)
    require_reader()


class _LastLines:
    """The last lines of a text that comes in pieces."""

    def __init__(self, count: int) -> None:
        self._count = count
        # Behind them the beginning of the next one, which may be empty.
        self._lines: deque[str] = deque([""], maxlen=count + 1)
        self.cut = False
        """Whether the beginning of a line was too long to be kept."""

    def add(self, text: str) -> None:
        first, *rest = text.split("\n")
        first = self._lines.pop() + first
        for line in (first, *rest):
            self.cut = self.cut or len(line) > _MOST_TEXT
            self._lines.append(line[-_MOST_TEXT:])

    @property
    def text(self) -> str:
        kept = list(self._lines)
        begun = bool(kept[-1])
        return "\n".join(kept[max(0, len(kept) - self._count - (not begun)) :]) if self._count else ""
