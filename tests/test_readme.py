"""docs/commands.md says of the command line what it says of itself, and both languages say as much."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from patcher.cli.app import COMMANDS, uky_patch
from patcher.cli.options import Once
from patcher.errors import ExitCode
from patcher.i18n import Language, show
from patcher.plan.outcome import FAILED, SETTLED
from patcher.session.config import file_shape
from tests.transcripts.documents import DOCUMENTS, name_of

ROOT = Path(__file__).parent.parent
COMMAND_PAGES: dict[str, Language] = {"docs/commands.md": "en", "docs/commands.zh-CN.md": "zh"}
"""Where commands, exit codes, outcomes and settings are listed; README links there."""
TWINS = [name_of(file) for file in DOCUMENTS if file.with_name(f"{file.stem}.zh-CN.md").exists()]
LONGEST_README = 130
"""Lines. README says what the tool is for and where to read on; all else is in docs/."""
SHARED = ("root", "python", "assume", "patches", "output")
OF_HOSTS = ("ssh", "port", "path", "data", "models", "results")


def command_table(language: Language) -> str:
    """One row a command: its name with its arguments and own options, and what it does."""
    context = click.Context(uky_patch)
    lines = ["| 命令 | 作用 |" if language == "zh" else "| command | does |", "| --- | --- |"]
    for name, text in COMMANDS.items():
        command = uky_patch.get_command(context, name)
        assert command is not None
        lines.append(f"| `{called(name, command)}` | {show(text, language)} |")
    return "\n".join(lines)


def called(name: str, command: click.Command) -> str:
    """A command with its arguments and own options; a group with its commands."""
    if isinstance(command, click.Group):
        return f"{name} {'/'.join(command.commands)}"
    reaches = any(item.name == "ssh" for item in command.params)
    shared = {*SHARED, *(OF_HOSTS if reaches else ())}
    parts = [usage(item) for item in command.params if item.name not in shared]
    return " ".join([name, *parts]).replace("|", "\\|")


def usage(item: click.Parameter) -> str:
    if isinstance(item, click.Argument):
        return item.make_metavar(click.Context(uky_patch)).strip("{}")
    assert isinstance(item, click.Option)
    if item.is_flag:
        return f"[{item.opts[0]}]"
    metavar = item.metavar or "/".join(getattr(item.type, "choices", ()))
    words = f"{item.opts[0]} {metavar}"
    several = item.multiple and not isinstance(item, Once)
    return (words if item.required else f"[{words}]") + ("..." if several else "")


@pytest.mark.parametrize(("name", "language"), COMMAND_PAGES.items())
def test_the_table_of_commands_is_that_of_the_command_line(name: str, language: Language) -> None:
    assert command_table(language) in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMAND_PAGES)
def test_exit_codes_outcomes_and_settings_are_all_told(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    told = set(re.findall(r"^\| ([a-z0-9`、, -]+) \|", text, re.MULTILINE))
    told |= {part for entry in told for part in re.split("[、,] ?", entry)}
    assert {str(code.value) for code in ExitCode} <= told
    assert {f"`{kind}`" for kind in SETTLED | FAILED | {"pending"}} <= told
    assert {f"`{key}`" for key in file_shape(Path()).fields} <= told


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_is_short(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= LONGEST_README


@pytest.mark.parametrize("name", TWINS)
def test_both_languages_have_the_same_shape(name: str) -> None:
    """Headings, tables and code blocks correspond, so that neither is left behind."""

    def shape(file: Path) -> list[str]:
        kinds = [re.match(r"#+|```|\|(?: ---)?|- \*\*", line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [kind[0] for kind in kinds if kind]

    file = ROOT / name
    assert shape(file) == shape(file.with_name(f"{file.stem}.zh-CN.md"))
