"""Every sentence that people can read has its Chinese, with the same gaps, and the catalogue holds nothing else."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import patcher
from patcher import errors
from patcher.cli.app import COMMANDS
from patcher.language import _catalogue, phrase, show
from patcher.planning.outcome import Kind
from patcher.verifying import Status

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


def templates() -> dict[str, str]:
    """Each template in the code, and where it is."""
    found = dict.fromkeys(COMMANDS.values(), "commands")
    found |= dict.fromkeys((kind.replace("-", " ") for kind in get_args(Kind)), "outcomes")
    found |= dict.fromkeys(get_args(Status), "statuses")
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            arguments: list[ast.expr] = []
            if node.func.id in ("phrase", "show"):
                arguments = node.args[:1]
            elif node.func.id in MISTAKES:
                arguments = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("cause", "advice"))]
            for argument in arguments:
                found |= dict.fromkeys(constants(argument, tree), f"{path.name}:{node.lineno}")
    return found


def gaps(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_template_is_translated() -> None:
    missing = {text: place for text, place in templates().items() if text not in _catalogue()}
    assert not missing


def test_translations_have_the_gaps_of_their_templates() -> None:
    wrong = {text: zh for text, zh in _catalogue().items() if gaps(text) != gaps(zh)}
    assert not wrong


def test_the_catalogue_holds_nothing_that_the_code_does_not_say() -> None:
    literals = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not set(_catalogue()) - literals - set(templates())


def test_a_phrase_within_a_phrase_is_translated_too() -> None:
    outer = phrase("{file} {problem}", file="verl/a.py", problem=phrase("is not in this tree"))
    assert show(outer, "zh") == "verl/a.py 不在这棵代码树里"
    assert show(outer, "en") == "verl/a.py is not in this tree"
