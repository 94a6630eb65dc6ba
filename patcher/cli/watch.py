"""`uky-patch watch`: a run as it goes, and where it hangs when it does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import reach_options
from patcher.cli.options import GivenPath, with_session
from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.remote.host import Profile
    from patcher.watch.run_state import RunState, RunStatus

_LONGEST = 160
"""Characters of a log line that are shown: two lines of a terminal of 80 columns."""


@click.command("watch", cls=Command)
@click.argument("targets", metavar="LOG|HOST...", nargs=-1, shell_complete=host_names)
@click.option("--pid", type=click.IntRange(min=1), metavar="PID", help="A process with all that it has started.")
@click.option("--job", metavar="ID", help="Which job of the host, by its id or an end of it; the newest by default.")
@click.option(
    "--profile",
    type=click.Choice(["standard", "debug", "fast-load"]),
    metavar="PROFILE",
    help="Whose expectations count; the job's own by default.",
)
@click.option("--limit", type=click.FloatRange(min=1), metavar="SECONDS", help="Call it a stall after so much silence.")
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait so long for a LOG to come.")
@click.option("--native", is_flag=True, help="Frames of compiled code too; each process is held for a moment.")
@click.option("--once", is_flag=True, help="Look once, at what it does now, and end.")
@click.option("--html", type=GivenPath(dir_okay=False), metavar="FILE", help="Write a page too, to be sent on.")
@click.option("--ray", metavar="ADDRESS", help="The Ray cluster whose workers count, on every node: HOST:PORT, auto.")
@reach_options
@with_session
def command(
    session: Session,
    /,
    targets: tuple[str, ...],
    pid: int | None,
    job: str | None,
    profile: Profile | None,
    limit: float | None,
    wait: float | None,
    native: bool,
    once: bool,
    html: Path | None,
    ray: str | None,
    **given: Any,
) -> int:
    """Milestones as they come; when it stalls, where each process stands, and why.

    LOG is a file; HOST has a job of this tree, "here" included. Further hosts are looked at for its other processes.
    """
    from contextlib import ExitStack

    from patcher.cli.diagnose import write_page
    from patcher.diagnose.log_argument import explain_unknown_host, log_or_host
    from patcher.diagnose.log_stream import STANDARD_INPUT
    from patcher.report.watch import exit_code, watch_report
    from patcher.terminal.document import print_report
    from patcher.terminal.report_file import page_file
    from patcher.watch.watch import WatchRequest, watch

    place = page_file(html)
    if (pid is None) == (not targets):
        raise UsageError(phrase("name a log, a host, or a process with --pid"))
    subjects = [log_or_host(session, name, given, "uky-patch watch") for name in targets]
    log = subjects[0].log if subjects else None
    if log == STANDARD_INPUT:
        raise UsageError(
            phrase("standard input is not watched"),
            advice=phrase(
                "Write it to a file, for example with tee, and watch that; or: {command}",
                command="uky-patch diagnose -",
            ),
        )
    if len(subjects) > 1:
        named = next((one.log for one in subjects if one.log is not None), None)
        if named is not None:
            raise UsageError(phrase("{name} is a log, and a log is watched alone", name=named))
    if wait is not None and log is None:
        raise UsageError(phrase("--wait is for a log on this machine"))
    watching = _Watching()
    hosts = [one.host for one in subjects if one.host is not None]
    asked = WatchRequest(
        Path(log) if log is not None else None, pid, hosts, job, profile, limit, native, once, ray, wait
    )
    with ExitStack() as stack:
        for one in subjects:
            stack.enter_context(explain_unknown_host(session, one, "uky-patch watch"))
        report = watch(session, asked, watching.listener)
    watching.end()
    if place is not None:
        stacks = report.as_json()["stacks"]
        groups = stacks["groups"] if stacks is not None else ()
        write_page(
            place,
            report.diagnosis,
            " ".join(targets) or f"pid {pid}",
            ["watch", *targets],
            groups,
            logs=[log] if log else [],
        )
    print_report(watch_report(report, session.output))
    return exit_code(report)


class _Watching:
    """What is shown while it goes: phases and steps, the lines that matter, and when it becomes slow."""

    def __init__(self) -> None:
        from patcher.terminal.live import Live
        from patcher.watch.watcher import Listener

        self._live = Live(indent="")
        self.listener = Listener(self._live.milestone, self._live.time, self._telling, self._status, self._live.problem)

    def end(self) -> None:
        """Leave the last line of progress as it is."""
        self._live.end()

    def _telling(self, text: str) -> None:
        self._say(f"  {text[:_LONGEST]}")

    def _status(self, status: RunStatus, state: RunState) -> None:
        from patcher.i18n import language, show
        from patcher.report.watch import activity_line, phase_line

        if status.pace != "normal":
            for line in (phase_line(status, status.phase), activity_line(state.activity)):
                if line:
                    self._say(show(line, language()))

    def _say(self, text: str) -> None:
        from patcher.visible import visible_line

        self._live.end()
        sys.stderr.write(f"{visible_line(text)}\n")
        sys.stderr.flush()
