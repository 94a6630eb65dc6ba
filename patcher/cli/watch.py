"""`uky-patch watch`: a run as it goes, and where it hangs when it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patcher.cli.completing import host_names
from patcher.cli.help import Command
from patcher.cli.hosts import ordered_host, reach_options
from patcher.cli.options import with_session
from patcher.errors import UsageError
from patcher.language import phrase
from patcher.session import Session

if TYPE_CHECKING:
    from patcher.hosts.host import Profile

_ENDINGS = (".log", ".txt", ".out", ".err")


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
@click.option("--native", is_flag=True, help="Frames of compiled code too; each process is held for a moment.")
@click.option("--once", is_flag=True, help="Look once, at what it does now, and end.")
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
    native: bool,
    once: bool,
    ray: str | None,
    **given: Any,
) -> int:
    """Milestones as they come; when it stalls, where each process stands, and why.

    LOG is a file; HOST has a job of this tree, "here" included. Further hosts are looked at for its other processes.
    """
    from patcher.operations.watching import Asked, watch
    from patcher.reporting.watch import Watching, exit_code, show_report

    if (pid is None) == (not targets):
        raise UsageError(phrase("name a log, a host, or a process with --pid"))
    log = Path(targets[0]) if len(targets) == 1 and _is_log(targets[0], session) else None
    hosts = [] if log is not None else [ordered_host(session, name, given) for name in targets]
    watching = Watching()
    report = watch(session, Asked(log, pid, hosts, job, profile, limit, native, once, ray), watching.ears)
    watching.end()
    show_report(report, session.output)
    return exit_code(report)


def _is_log(name: str, session: Session) -> bool:
    """Whether a file is meant, there or yet to come, rather than a host."""
    from patcher.operations.reaching import root_of

    configured = root_of(session) is not None and name in session.config.hosts
    return not configured and (Path(name).is_file() or "/" in name or name.endswith(_ENDINGS))
