"""`uky-patch job`: the jobs of a host, looked at, followed and stopped."""

from __future__ import annotations

from typing import Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import CommandGroup
from patcher.cli.hosts import ordered_host, reach_options
from patcher.cli.options import with_session
from patcher.session.session import Session


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
    from patcher.jobs.link import linked
    from patcher.report.jobs import show_status

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        show_status(machine, status_of(link.open()[0], job), session.output)
    return 0


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
    from patcher.jobs.link import linked
    from patcher.report.jobs import LastLines, show_end, show_log, show_text

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        connection, _ = link.open()
        text, found, offset = jobs.tail(connection, job, lines, whole=follow)
        last = LastLines(lines) if session.output == "json" else None
        on_text = show_text if last is None else last.add
        on_text(text)
        verdict = None
        if follow:
            verdict = jobs.follow(link.reconnect, connection, found, on_text=on_text, offset=offset)
            show_end(machine, verdict)
        if last is not None:
            show_log(machine, found, last.text, verdict)
    return 0


@command.command("attach")
@_HOST
@_ID
@reach_options
@with_session
def attach(session: Session, /, host: str, job: str | None, **given: Any) -> int:
    """Follow it by its phases until its verdict. Ctrl-C leaves it running."""
    from patcher import jobs
    from patcher.jobs.link import linked
    from patcher.jobs.run import follow_and_keep
    from patcher.report.jobs import Live, exit_code, show_started, show_verdict

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        found, _ = jobs.look(link.open()[0], job)
        show_started(machine, found)
        live = Live()
        verdict = follow_and_keep(link, found, live.milestone, live.time, live.trouble, keep=not found.over)
        live.end()
    show_verdict(machine, verdict, session.output)
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
    from patcher.jobs.link import linked
    from patcher.report.jobs import show_stopped, show_stopping

    machine = ordered_host(session, host, given)
    with linked(machine, session.tree.root) as link:
        stopped = jobs.stop(link.open()[0], job, grace=grace, on_list=show_stopping)
    return show_stopped(machine, stopped, session.output)
