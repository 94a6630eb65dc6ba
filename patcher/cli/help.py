"""What `--help` shows, in the reader's language and for the terminal's width; nothing in it is cut off.

Commands and groups of commands are of the classes here. Their texts are the docstrings and `help=` of the command's
module, its examples those of `patcher.cli.examples`.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import click

from patcher.cli.examples import EXAMPLES
from patcher.errors import UsageError
from patcher.i18n import Language, language, phrase, show
from patcher.terminal.layout import width

_WIDEST = 100
_NARROW = 72
"""Below this many columns, what an option does stands under it and not beside it."""
_LABEL = 24
"""Columns; a longer label has its text on the next line."""
_WIDE = "\u2e80-\u2fff\u3040-\u9fff\uac00-\ud7a3\uff01-\uff60"
_OPENING, _CLOSING = "（“‘《「【", "）”’》」】，。；：、！？"
_PIECE = rf"[{_OPENING}]*(?:(?![{_OPENING}{_CLOSING}])[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+)?[{_CLOSING}]*(\s*)"
"""What stays together on a line: a word, or one Chinese character with the punctuation that belongs to it."""
_GLOBAL = ("root", "python", "assume", "patches", "output")
_OF_HOSTS = ("ssh", "port", "path", "data", "models", "results")


class Command(click.Command):
    """A command whose help and usage are those of this module."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _named(ctx):
            return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_of(self, ctx)

    def get_usage(self, ctx: click.Context) -> str:
        return usage_of(self, ctx)


class CommandGroup(Command, click.Group):
    """A group whose name alone is a mistake: its help goes to standard error, and the exit code is 2."""

    command_class = Command
    headings: Mapping[str, Iterable[str]] = {}
    """The names of its commands by heading; empty where one heading is enough."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            raise UsageError(phrase("no command is named"))
        return super().parse_args(ctx, args)

    def summary(self, ctx: click.Context, name: str) -> str:
        """What a command of the group does, in English, whole."""
        command = self.get_command(ctx, name)
        return paragraphs(command)[0] if command is not None else ""


@contextmanager
def _named(ctx: click.Context) -> Iterator[None]:
    """Give a mistake its command, which click leaves out where an option lacks its value (`apply --tag`)."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def paragraphs(command: click.Command) -> list[str]:
    """What a command says of itself, one paragraph after another, each on one line."""
    text = inspect.cleandoc(command.help or "")
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def help_of(command: click.Command, ctx: click.Context) -> str:
    """The whole help of a command or group."""
    tongue, columns = language(), _columns()
    lines = usage_of(command, ctx).split("\n")
    for text in paragraphs(command):
        lines += ["", *folded(show(text, tongue), columns, indent=2)]
    sections = list(_sections(command, ctx, tongue))
    label = min(_LABEL, max(width(name) for _, entries in sections for name, _ in entries))
    for heading, entries in sections:
        lines += ["", f"{show(heading, tongue)}{show(':', tongue)}", *_listed(entries, label, columns)]
    examples = EXAMPLES[" ".join(ctx.command_path.split()[1:])]
    lines += ["", f"{show('Examples', tongue)}{show(':', tongue)}"]
    for line, what in examples:
        lines += [f"  {line}", *folded(show(what, tongue), columns, indent=6)]
    if isinstance(command, click.Group):
        more = phrase("A command in full: {command}", command=f"{ctx.command_path} COMMAND --help")
        lines += ["", *folded(more.render(tongue), columns)]
    return "\n".join(lines)


def usage_of(command: click.Command, ctx: click.Context) -> str:
    """`Usage: uky-patch apply [OPTIONS] [ID]...`."""
    pieces = command.collect_usage_pieces(ctx)
    tongue = language()
    shown = " ".join(show(piece, tongue) for piece in pieces)
    label = f"{show('Usage', tongue)}{show(':', tongue)}"
    label += "" if label.endswith("：") else " "
    first, *rest = folded(f"{label}{ctx.command_path} {shown}", _columns())
    return "\n".join([first, *(f"    {line}" for line in rest)])


def _columns() -> int:
    return max(40, min(shutil.get_terminal_size().columns, _WIDEST))


def folded(text: str, columns: int, *, indent: int = 0) -> list[str]:
    """Text in lines that fit; a word that is longer than a line stays whole."""
    lines, line, gap = [], "", ""
    for piece in re.finditer(_PIECE, text):
        if not piece[0]:
            continue
        word = piece[0][: len(piece[0]) - len(piece[1])]
        if line and indent + width(line + gap + word) > columns:
            lines.append(line)
            line, gap = "", ""
        line, gap = f"{line}{gap}{word}", piece[1]
    return [" " * indent + each for each in [*lines, line]]


def _sections(
    command: click.Command, ctx: click.Context, tongue: Language
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each heading with its entries, what is named and what it does; none is empty."""
    if isinstance(command, CommandGroup):
        for heading, names in (command.headings or {"Commands": command.list_commands(ctx)}).items():
            yield heading, [(name, show(command.summary(ctx, name), tongue)) for name in names]
    groups: dict[str, list[tuple[str, str]]] = {"Options": [], "To reach the host": [], "Global options": []}
    reaches = any(item.name == "ssh" for item in command.params)
    for item in command.get_params(ctx):
        if not isinstance(item, click.Option) or (record := item.get_help_record(ctx)) is None:
            continue
        heading = "To reach the host" if reaches and item.name in _OF_HOSTS else "Options"
        if not isinstance(command, CommandGroup) and item.name in (*_GLOBAL, "help"):
            heading = "Global options"
        groups[heading].append((record[0], _what(item, tongue)))
    yield from ((heading, entries) for heading, entries in groups.items() if entries)


def _what(option: click.Option, tongue: Language) -> str:
    """What an option does, with its default and its range: `How many rows. [default: 2] [1<=x<=100000]`."""
    parts = [show(option.help or "", tongue)]
    if option.show_default:
        parts.append(phrase("[default: {value}]", value=option.default).render(tongue))
    if option.required:
        parts.append(show("[required]", tongue))
    if isinstance(option.type, click.IntRange | click.FloatRange):
        parts.append(f"[{option.type._describe_range()}]")
    return " ".join(parts)


def _listed(entries: list[tuple[str, str]], label: int, columns: int) -> Iterator[str]:
    """Entries below each other, their texts beside labels of that width where there is room."""
    for name, text in entries:
        if columns < _NARROW:
            yield from (f"  {name}", *folded(text, columns, indent=6))
            continue
        lines = [line.strip() for line in folded(text, columns, indent=label + 4)]
        if width(name) > label:
            yield f"  {name}"
        else:
            yield f"  {name}{' ' * (label - width(name))}  {lines.pop(0)}".rstrip()
        yield from (" " * (label + 4) + line for line in lines)
