"""Uses in Python files that are not of the tree: launchers that set variables and start verl or vLLM."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.analysis.model import Context, Use
from patcher.analysis.reading.environment import environment_uses
from patcher.check.scripts.programs import Program
from patcher.check.scripts.shell import Field, Misread
from patcher.check.scripts.shell_files import shell_uses
from patcher.worktree.python import UnreadableError, parse

_SHELL_CALLS = frozenset({"system", "run", "Popen", "call", "check_call", "check_output", "popen"})


def python_uses(file: str, text: str, line: int = 1) -> Iterator[Use | Misread]:
    """What a launcher sets and starts. `line`: the number of its first line."""
    content = ("\n" * (line - 1) + text).encode()
    try:
        tree = parse(content)
    except UnreadableError as error:
        yield Misread(error.line)
        return
    yield from environment_uses(content, tree, file, _always)
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                fields = [_field(item) for item in items]
                yield from Program(file, fields).uses()
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(script)) as told, *_]
            ) if name in _SHELL_CALLS:
                yield from shell_uses(file, script, told.lineno)
            case _:
                pass


def _always(_node: ast.AST) -> Context:
    return Context()


def _field(item: ast.expr) -> Field:
    match item:
        case ast.Constant(value=str(text)):
            return Field(text, item.lineno)
        case ast.JoinedStr(values=values):
            written = "".join(str(v.value) if isinstance(v, ast.Constant) else "$(…)" for v in values)
            return Field(written, item.lineno)
        case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
            return Field("python", item.lineno)
        case _:
            return Field("$(…)", item.lineno)
