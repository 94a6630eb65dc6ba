"""What README and docs name is there: commands with their options, files, links, targets of make; in both languages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import click
import pytest

from patcher.cli.app import uky_patch
from tests.transcripts.documents import DOCUMENTS, ROOT, blocks, name_of

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
OURS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
"""Top folders of this repository; a path that begins otherwise is one of a fork."""
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
documents = pytest.mark.parametrize("file", DOCUMENTS, ids=name_of)


@documents
def test_every_command_that_is_named_exists_with_its_options(file: Path) -> None:
    wrong = []
    for line in command_lines(file.read_text(encoding="utf-8")):
        try:
            parsed(shlex.split(line)[1:])
        except click.UsageError as error:
            wrong.append(f"{line}: {error.message}")
    assert wrong == []


@documents
def test_every_link_leads_somewhere(file: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        if not re.match(r"https?:", target) and not (there.exists() and (not anchor or anchor in anchors(there))):
            broken.append(target)
    assert broken == []


@documents
def test_every_file_of_ours_that_is_named_is_there(file: Path) -> None:
    words = [word.rstrip(".,;:") for code in CODE.findall(file.read_text(encoding="utf-8")) for word in code.split()]
    named = {word.partition("::")[0] for word in words if word.split("/")[0] in OURS and "/" in word}
    plain = {name for name in named if not re.search(r"[<>*{}$…]", name)}
    assert {name for name in plain if not (ROOT / name).exists()} == set()


@documents
def test_every_target_of_make_that_is_named_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    typed = [line for start, end in blocks(lines) for line in lines[start + 1 : end]] + CODE.findall(text)
    named = {
        target for line in typed if (found := re.match(r"make ((?:[a-z-]+ ?)+)", line)) for target in found[1].split()
    }
    assert {target for target in named if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)} == set()


@documents
def test_both_languages_name_the_same_commands_under_as_many_headings(file: Path) -> None:
    twin = file.with_name(f"{file.stem}.zh-CN.md")
    if not twin.exists():
        return
    texts = [each.read_text(encoding="utf-8") for each in (file, twin)]
    headings = [re.findall(r"^#+", text, re.MULTILINE) for text in texts]
    assert headings[0] == headings[1]
    assert sorted(set(command_lines(texts[0]))) == sorted(set(command_lines(texts[1])))


def test_two_commands_are_all_that_a_stranger_needs() -> None:
    """The first block of README is the set-up: what it names makes the environment by itself."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start, end = next(blocks(lines))
    assert lines[start + 1 : end] == ["make demo", "make test"]
    assert re.search(r"^\$\(READY\): pyproject\.toml$", MAKEFILE, re.MULTILINE)
    for target in ("demo", "test"):
        assert re.search(rf"^{target}: \$\(READY\)", MAKEFILE, re.MULTILINE)


@lru_cache
def anchors(file: Path) -> set[str]:
    """The names by which the headings of a document can be linked to."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings} | set(
        re.findall(r'<a id="([^"]+)"', file.read_text(encoding="utf-8"))
    )


def command_lines(text: str) -> Iterator[str]:
    """What a document tells to type: lines of blocks and inline code that begin with `uky-patch`."""
    lines = text.splitlines()
    inside = {index for start, end in blocks(lines) for index in range(start, end + 1)}
    for index, line in enumerate(lines):
        if index in inside and (found := re.match(r"(?:\$ | *)(uky-patch .+)", line)):
            yield found[1].partition("  #")[0]
    outside = "\n".join(line for index, line in enumerate(lines) if index not in inside)
    for code in CODE.findall(outside):
        written = re.sub(r"[\[\]]", "", code.replace("\n", " ").replace("\\|", "|"))  # `verify [--host HOST]`
        if written.startswith("uky-patch "):
            yield written


def parsed(words: list[str]) -> None:
    """Parse as the command line does, but take any value for a value. Raises click.UsageError."""
    context = click.Context(uky_patch, info_name="uky-patch")
    command: click.Command = uky_patch
    while True:
        given, words, _ = command.make_parser(context).parse_args(words)
        if not isinstance(command, click.Group):
            if words:
                raise click.UsageError(f"{words} is more than {command.name} takes")
            return
        if not words:
            if given:
                return
            raise click.UsageError("a command is missing")
        _, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command, context = inner, click.Context(inner, parent=context, info_name=inner.name)
