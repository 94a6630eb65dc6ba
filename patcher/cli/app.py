"""The command line: commands are imported when they are called, and mistakes are caught in one place."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from patcher import __version__
from patcher.cli.options import shared
from patcher.errors import ExitCode, UkyError
from patcher.language import language, show
from patcher.reporting.hiding import without_secrets

COMMANDS = {
    "demo": "the whole round on a real verl release, in a scratch folder",
    "list": "the records",
    "explain": "one record: why it does or does not apply here",
    "status": "the records against this tree",
    "apply": "make the edits that are needed here, all or none",
    "revert": "take edits out again, byte for byte",
    "verify": "prove that the edits hold",
    "check": "before an upgrade: what a release no longer offers that the tree uses",
    "pins": "what other versions would mean: records needed, no longer needed, drifted; breaks left",
    "migrate": "the fork running on another machine",
    "render": "git_ignore.py and the run scripts, for this machine or a host",
    "data": "what a data set holds, and a tiny copy of it",
    "model": "the newest model, and its weights read into memory ahead",
    "run": "the training job of a profile, here or on a host",
    "job": "a host's jobs: status, logs, attach, stop",
    "diagnose": "why a run failed, or where it stands still, from its log",
    "watch": "a run as it goes, and where each of its processes stands when it hangs",
    "probe": "look into a live process that runs with probing",
    "bundle": "one archive for a bug report, without secrets, listed before it is written",
    "clean": "what a job has left behind: processes, shared memory, sockets, sessions of Ray, caches",
    "symptoms": "the failures, stalls and bad courses that are known, and what to do",
    "completion": "a completion script for bash, zsh or fish",
}


class LazyGroup(click.Group):
    """Imports `patcher.cli.<name>` for a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"patcher.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, show(text, language())) for name, text in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="uky-patch", message="%(prog)s %(version)s")
@shared
def uky_patch() -> None:
    """Keep a fork of verl running on the vLLM, torch, Triton and transformers that are installed."""


@without_secrets()
def run(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code. Mistakes of the user or the machine are told here, once."""
    try:
        code = uky_patch.main(arguments, prog_name="uky-patch", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo(show("interrupted", language()), err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.CLEAN
    except UkyError as error:
        tell(error)
        return error.exit_code


def tell(error: UkyError) -> None:
    """Title, cause and advice on standard error, in the reader's language."""
    tongue = language()
    label = click.style(show("error", tongue), fg="red", bold=True)
    lines = [f"{label}: {show(error.title, tongue)}"]
    lines += [f"  {show(part, tongue)}" for part in (error.cause, error.advice) if part]
    click.echo("\n".join(lines), err=True)
