"""Every sentence that people can read has its Chinese, with the same gaps, and the catalogue holds nothing else."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import string
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import patcher
from bench.catalogue import FOLDER, sorted_catalogue
from patcher import errors
from patcher.analysis.findings import FindingKind, Severity
from patcher.checks import Status
from patcher.cli.app import COMMANDS, HEADINGS
from patcher.cli.examples import EXAMPLES
from patcher.cli.help import paragraphs
from patcher.cli.mistakes import _SENTENCES
from patcher.data import shipped
from patcher.i18n import _catalogue, phrase, show
from patcher.plan.outcome import Kind
from tests.commands import commands, parameters

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAID_AT = {
    "phrase": 0,
    "show": 0,
    "both": 0,
    "Mistake": 3,
    "note": 1,
    "matching": 1,
    "tree_error": 1,
    "_refused": 1,
    "_not_allowed": 1,
    "UsageError": 0,
}
"""Calls by the place of the argument that people read."""
ELSEWHERE = {os.strerror(number) for number in errno.errorcode} | {
    "invalid start byte",
    "invalid continuation byte",
    "unexpected end of data",
}
"""What the operating system and Python's codecs say."""
PARSERS = (Path(json.decoder.__file__), Path(json.scanner.__file__), Path(tomllib.__file__).with_name("_parser.py"))
PAGES = sorted(shipped("templates").glob("*.html.j2"))
SOURCES = sorted(Path(patcher.__file__).parent.rglob("*.py"))
MISTAKES = {name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, errors.UkyError)}


def constants(node: ast.expr | None, module: ast.AST) -> Iterator[str]:
    """The literal texts that an argument can be: itself, a branch, or what a name of the module's was set to."""
    match node:
        case ast.Constant(value=str(text)) if text.strip():
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from constants(body, module)
            yield from constants(orelse, module)
        case ast.Name(id=name):
            for other in ast.walk(module):
                if isinstance(other, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == name for t in other.targets
                ):
                    yield from constants(other.value, ast.Module([], []))


def of_the_command_line() -> dict[str, str]:
    """What the help of every command says, and click's sentences; each with the command that it is of."""
    found = dict.fromkeys(("[OPTIONS]", "COMMAND [ARGS]...", "Commands", *HEADINGS), "help")
    found |= dict.fromkeys(("Options", "To reach the host", "Global options"), "help")
    found |= dict.fromkeys(_SENTENCES, "mistakes")
    for path, command in commands():
        found |= dict.fromkeys(paragraphs(command), path)
        found |= {item.help: path for item in parameters(command) if item.help}
        found |= {what: path for _, what in EXAMPLES[path]}
    return found


def templates() -> dict[str, str]:
    """Each template in the code, and where it is."""
    found = dict.fromkeys(COMMANDS.values(), "commands") | of_the_command_line()
    found |= dict.fromkeys((kind.replace("-", " ") for kind in get_args(Kind)), "outcomes")
    found |= dict.fromkeys(get_args(Status), "statuses")
    found |= dict.fromkeys((kind.replace("-", " ") for kind in get_args(FindingKind)), "kinds of findings")
    found |= dict.fromkeys(get_args(Severity), "severities")
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for argument in arguments(node):
                found |= dict.fromkeys(constants(argument, tree), f"{path.name}:{node.lineno}")
    for path in PAGES:
        found |= dict.fromkeys(re.findall(r'both\("([^"]+)"\)', path.read_text(encoding="utf-8")), path.name)
    return found


def arguments(node: ast.AST) -> list[ast.expr]:
    """The arguments of a call that people will read."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SAID_AT:
            return node.args[SAID_AT[name] :][:1]
        case ast.Call(func=ast.Name(id=name)) if name in MISTAKES:
            return [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("cause", "advice"))]
    return []


def literals(paths: Iterable[Path]) -> set[str]:
    return {
        node.value
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def gaps(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_template_is_translated() -> None:
    missing = {text: place for text, place in templates().items() if text not in _catalogue()}
    assert not missing


def test_translations_have_the_gaps_of_their_templates() -> None:
    wrong = {text: zh for text, zh in _catalogue().items() if gaps(text) != gaps(zh)}
    assert not wrong


def test_the_catalogue_holds_nothing_that_is_not_said() -> None:
    assert not set(_catalogue()) - literals(SOURCES) - set(templates()) - literals(PARSERS) - ELSEWHERE


def test_each_sentence_is_in_the_file_of_its_room() -> None:
    """Where this fails: `python -m bench.catalogue`."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.toml")} == sorted_catalogue()


def test_no_sentence_is_put_together_before_it_can_be_translated() -> None:
    glued = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for argument in arguments(node)
        if isinstance(argument, ast.JoinedStr)
    ]
    assert not glued


def test_a_phrase_within_a_phrase_is_translated_too() -> None:
    outer = phrase("{file} {problem}", file="verl/a.py", problem=phrase("is not in this tree"))
    assert show(outer, "zh") == "verl/a.py 不在这棵代码树里"
    assert show(outer, "en") == "verl/a.py is not in this tree"
