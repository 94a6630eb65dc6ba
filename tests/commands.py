"""The command line as click has it: every command, its options, and whether a line fits it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from patcher.cli.app import uky_patch


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and group by its name, `""` being the whole and `job logs` one in a group."""

    def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from walk(f"{path} {name}".strip(), inner)

    yield from walk("", uky_patch)


def parameters(command: click.Command) -> list[click.Option]:
    """The options of a command, `--help` among them."""
    return [item for item in command.get_params(click.Context(command)) if isinstance(item, click.Option)]


def mistake_in(words: list[str]) -> str:
    """What click says against the words after `uky-patch`; empty where they fit a command. Nothing is run."""
    context: click.Context = click.Context(uky_patch, info_name="uky-patch")
    try:
        context = uky_patch.make_context("uky-patch", list(words))
        command: click.Command = uky_patch
        rest = [*context._protected_args, *context.args]
        while isinstance(command, click.Group):
            if not rest:
                return "Missing command."
            name, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command = found
            context = command.make_context(name, list(rest), parent=context)
            rest = [*getattr(context, "_protected_args", ()), *context.args]
    except (click.exceptions.Exit, click.ClickException) as error:
        return "" if isinstance(error, click.exceptions.Exit) else error.format_message()
    return ""
