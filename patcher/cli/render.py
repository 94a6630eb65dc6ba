"""`uky-patch render`: a host's own files."""

from __future__ import annotations

import click

from patcher.cli.help import Command
from patcher.cli.options import with_session
from patcher.errors import ExitCode
from patcher.remote.host import Profile
from patcher.session.session import Session
from patcher.terminal.answers import show_json


@click.command("render", cls=Command)
@click.argument("name", metavar="NAME")
@click.option("--host", metavar="HOST", help="For this host; without it, for this machine.")
@click.option("--diff", is_flag=True, help="Show what would change in the file that is there. Exit code 1 if anything.")
@click.option("--write", is_flag=True, help="Put the file; one that was edited by hand stays.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A folder, variable, constant or hydra key.")
@click.option("--profile", type=click.Choice(["standard", "debug", "fast-load"]), help="Which one run.sh stands for.")
@with_session
def command(
    session: Session,
    name: str,
    host: str | None,
    diff: bool,
    write: bool,
    sets: tuple[str, ...],
    profile: Profile | None,
) -> int:
    """Print git_ignore.py, run_standard.sh, run_debug.sh or run_fast_load.sh as this machine or HOST needs it.

    ray-cluster.yaml and ray-job.yaml are manifests for KubeRay, from [hosts.HOST.kubernetes].
    """
    from patcher.profiles.rendering import render_file
    from patcher.report.render import as_json, difference_report, text_report, written_report
    from patcher.terminal.document import print_report

    shown = render_file(session, name, host, sets, profile, write=write, diff=diff)
    if session.output == "json":
        show_json(as_json(shown, wrote=write))
    elif write:
        print_report(written_report(shown))
    elif diff:
        print_report(difference_report(shown))
    else:
        print_report(text_report(shown))
    if shown.written is None:
        return ExitCode.CLEAN
    differs = shown.written.outcome in ("kept", "foreign") if write else diff and shown.written.outcome != "unchanged"
    return ExitCode.FINDINGS if differs else ExitCode.CLEAN
