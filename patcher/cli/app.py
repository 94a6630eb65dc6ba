"""The entry of the command line: the list of commands, lazy import of the one that is called, one handler for all
exceptions.

`run` gives the exit code. Errors are told on standard error; with `--format json` standard output gets exactly one
object, also where the command fails.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from patcher import __version__, interrupt
from patcher.cli.ending import as_error, error_report, tell
from patcher.cli.help import CommandGroup
from patcher.cli.options import shared
from patcher.errors import ExitCode, UkyError, UsageError
from patcher.i18n import phrase
from patcher.terminal.answers import held
from patcher.terminal.output import ReaderGoneError
from patcher.terminal.printing import guarded, say
from patcher.trust import search_only_outside

_AS_JSON = "patcher.as_json"
"""Where click's context keeps whether JSON is asked for, before and after `--version`."""
COMPLETE = "_UKY_PATCH_COMPLETE"
"""The variable by which a shell asks for completions."""

HEADINGS = {
    "To try it": {
        "demo": "the whole round on a real verl release, in a scratch folder",
    },
    "Records and the tree": {
        "list": "the records",
        "explain": "one record: why it does or does not apply here",
        "status": "the records against this tree",
        "apply": "make the edits that are needed here, all or none",
        "revert": "take edits out again, byte for byte",
        "verify": "prove that the edits hold",
        "record": "edits made by hand into records, proven before they are written",
        "new": "a record to begin with, for a place in the tree",
        "adopt": "edits made by hand that a record describes, taken over as if apply had made them",
        "backport": "a fix of upstream verl as a record for this older tree",
        "rebase": "the fork's own records onto another verl, as a git branch",
        "docs": "the fork's own change record, MIGRATION.md",
    },
    "Before an upgrade": {
        "check": "before an upgrade: what a release no longer offers that the tree uses",
        "pins": "what other versions would mean: records needed, no longer needed, drifted; breaks left",
    },
    "Hosts and jobs": {
        "migrate": "the fork running on another machine",
        "diff": "what was edited on a host since the last migration",
        "pull": "edits made on a host, merged into the tree here",
        "render": "git_ignore.py and the run scripts, for this machine or a host",
        "data": "what a data set holds, and a tiny copy of it",
        "model": "the newest model, and its weights read into memory ahead",
        "run": "the training job of a profile, here or on a host",
        "job": "a host's jobs: status, logs, attach, stop",
        "prune": "old copies and ended jobs, removed here or on a host to make room",
    },
    "When a run fails or hangs": {
        "diagnose": "why a run failed, or where it stands still, from its log",
        "watch": "a run as it goes, and where each of its processes stands when it hangs",
        "probe": "look into a live process that runs with probing",
        "bundle": "one archive for a bug report, without secrets, listed before it is written",
        "clean": "what a job has left behind: processes, shared memory, sockets, sessions of Ray, caches",
        "symptoms": "the failures, stalls and bad courses that are known, and what to do",
    },
    "Settings of the tool": {
        "trust": "that the tree's own environment may be started, remembered outside it",
        "completion": "a completion script for bash, zsh or fish",
    },
}
"""Every command, and what it does, as the help groups them."""
COMMANDS = {name: text for names in HEADINGS.values() for name, text in names.items()}


class LazyGroup(CommandGroup):
    """Imports `patcher.cli.<name>` for a command only when it is called."""

    headings = HEADINGS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"patcher.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_AS_JSON] = interrupt.asks_for_json(args)
        return super().parse_args(ctx, args)

    def summary(self, ctx: click.Context, name: str) -> str:  # noqa: ARG002
        return COMMANDS[name]

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


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(json.dumps({"version": __version__}) if ctx.meta[_AS_JSON] else f"uky-patch {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@shared
def uky_patch() -> None:
    """Keep a fork of verl running on the vLLM, torch, Triton and transformers that are installed."""


@guarded()
def run(arguments: Sequence[str | os.PathLike[str]] | None = None) -> int:
    """Run one command and give its exit code. What it ends with instead of a result is reported here, once.

    With `--format json` standard output gets one object, whatever happens.
    """
    given = sys.argv[1:] if arguments is None else [os.fspath(argument) for argument in arguments]
    # The option is looked for before click reads the command line: a mistake there must be reported as JSON too.
    if not interrupt.asks_for_json(given):
        code, _ = _outcome(given)
        return code
    with held() as output:
        code, error = _outcome(given)
    interrupt.answered()
    output.release(error_report(error) if error is not None else None)
    return code


def _outcome(arguments: list[str]) -> tuple[int, UkyError | None]:
    """The exit code of a command, and the error that it ended with, if any. Errors have been reported."""
    try:
        interrupt.raise_instead()
        try:
            code = _invoke(arguments)
            sys.stdout.flush()
        finally:
            interrupt.end_at_once()
    except click.exceptions.Exit as stop:
        return stop.exit_code, None
    except ReaderGoneError:
        return ExitCode.CLEAN, None
    except BaseException as raised:
        error = as_error(raised)
        if isinstance(raised, click.UsageError) and raised.ctx is not None:
            say(*raised.ctx.get_usage().split("\n"), err=True)
        tell(error)
        return error.exit_code, error
    return code, None


def _invoke(arguments: list[str]) -> int:
    """Without click's own `main`, which ends a process whose pipe was cut with 1, and calls every EOFError an abort."""
    if os.environ.get(COMPLETE):
        from patcher.cli.completing import complete

        return complete(uky_patch, COMPLETE)
    search_only_outside()
    if any("\0" in argument for argument in arguments):
        raise UsageError(phrase("an argument holds the character NUL"))
    with uky_patch.make_context("uky-patch", list(arguments)) as context:
        return int(uky_patch.invoke(context) or 0)
