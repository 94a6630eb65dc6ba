"""`uky-patch run`: the training job, here or on a host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from patcher.cli.help import Command
from patcher.cli.hosts import ordered_host, reach_options
from patcher.cli.options import with_session
from patcher.errors import ExitCode, UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

if TYPE_CHECKING:
    from patcher.remote.host import Profile


class _Run(Command):
    """Knows which words came after `--`, which click does not tell from others."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_BEHIND] = tuple(args[args.index("--") + 1 :]) if "--" in args else ()
        return super().parse_args(ctx, args)


_BEHIND = "patcher.cli.run.behind"


@click.command("run", cls=_Run)
@click.argument("profile", type=click.Choice(["standard", "debug", "fast-load"]))
@click.argument("overrides", nargs=-1, metavar="[-- OVERRIDE...]")
@click.option("--host", "name", default="here", metavar="HOST", help="Where; this machine by default.")
@click.option("--detach", is_flag=True, help="Start it and leave it; uky-patch job attach comes back to it.")
@click.option("--share", is_flag=True, help="Start it though the GPUs are busy.")
@click.option("--force", is_flag=True, help="Start it though no GPU is visible there.")
@click.option("--only-rollout", is_flag=True, help="Generation and reward on the validation data; no training.")
@click.option("--script", metavar="PATH", help="A script of the tree's own, instead of the rendered one.")
@reach_options
@with_session
def command(
    session: Session,
    /,
    profile: Profile,
    overrides: tuple[str, ...],
    name: str,
    detach: bool,
    share: bool,
    force: bool,
    only_rollout: bool,
    script: str | None,
    **given: Any,
) -> int:
    """Run the script of a profile as a job that outlives this command, and follow it to its verdict.

    Hydra overrides come after --.
    """
    from patcher.jobs import JobListener
    from patcher.jobs.job_log import why_failed
    from patcher.jobs.run import RunRequest, follow_and_keep, launch
    from patcher.remote.link import linked
    from patcher.report.jobs import exit_code, job_report, started_report, unset_report, verdict_report
    from patcher.terminal.document import print_report
    from patcher.terminal.live import Live

    behind = click.get_current_context().meta[_BEHIND]
    if overrides != behind:
        command_line = shlex.join(["uky-patch", "run", profile, "--", *overrides])
        raise UsageError(
            phrase("{word} is no part of the command; overrides come after --", word=overrides[0]),
            advice=phrase("As an override: {command}", command=command_line),
        )
    host = ordered_host(session, name, given)
    if host.here and host.python is None and (script or host.script) is None:
        session.require_environment()  # A script of the fork's own is rendered for no versions.
    print_report(unset_report(host))
    wanted = RunRequest(host, profile, overrides, only_rollout, share, force, script)
    with linked(host, session.tree.root) as link:
        job = launch(session, link, wanted)
        print_report(started_report(host, job))
        if detach:
            print_report(job_report(host, job, session.output))
            return ExitCode.CLEAN
        live = Live()
        listener = JobListener(milestone=live.milestone, time=live.time, problem=live.problem)
        verdict = follow_and_keep(link, job, listener)
        live.end()
    why = why_failed(session, host, verdict)
    print_report(verdict_report(host, verdict, session.output, why))
    return exit_code(verdict)
