"""Options that describe a host (`--ssh`, `--port`, `--path`, …), for every command that reaches one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from patcher.remote.host import Host
    from patcher.session.session import Session

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--ssh", metavar="TARGET", help="What ssh is given: alias, host or user@host."),
    click.option("--port", type=int, metavar="N", help="The port of sshd there."),
    click.option("--path", metavar="DIR", help="The tree's folder there; by default in the home, named as here."),
    click.option("--data", metavar="DIR", help="The folder of data sets there."),
    click.option("--models", metavar="DIR", help="The folder of models there."),
    click.option("--output", "results", metavar="DIR", help="The folder for checkpoints and logs there."),
    click.option("--profile", type=click.Choice(["standard", "debug", "fast-load"]), help="Which run script."),
)


def _adding(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """A decorator that adds the options; the command gets them by name, None where they were not given."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


host_options = _adding(_OPTIONS)
reach_options = _adding(_OPTIONS[:-1])
"""Without the profile, for a command that has another way to name it, or needs none."""
near_options = _adding(_OPTIONS[:3])
"""How to reach the host and where the tree is there, for a command with options of its own for all else."""


def ordered_host(session: Session, name: str, given: Mapping[str, Any]) -> Host:
    """The host that the command line means: its table in uky-patch.toml, and what was given over it.

    Raises UsageError for a name or value that is refused, RecordError for a bad table.
    """
    from patcher.session.hosts import find_host

    named = {"output" if key == "results" else key: value for key, value in given.items() if value is not None}
    if session.python is not None:
        named["python"] = str(session.python)
    return find_host(session.config, name, **named)
