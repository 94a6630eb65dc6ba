"""Patterns: Python with metavariables, read into syntax trees in which a metavariable is a name of its own kind."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import cached_property, lru_cache

from patcher.worktree.python import UnreadableError, parse, parse_expression

_ONE, _RUN = "__uky_one_", "__uky_run_"
_SKIPPED = r"""\#[^\r\n]*|"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'"""
_META = re.compile(rf"(?P<skip>{_SKIPPED})|(?P<dollars>\$\$\$|\$)(?P<name>[A-Z_][A-Z0-9_]*)?", re.DOTALL)
PLACE = re.compile(rf"\*{{0,2}}({_ONE}|{_RUN})(\w*)")
"""A metavariable in a pattern's placed text."""


@dataclass(frozen=True, slots=True)
class Meta:
    """One metavariable; `name` is "_" where nothing is bound."""

    name: str
    run: bool


@dataclass(frozen=True)
class Pattern:
    """A pattern as text with placeholders for metavariables, and as the statements that it parses to."""

    source: str
    placed: str
    body: tuple[ast.stmt, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The identifiers that a text must hold somewhere if the pattern is to match in it."""
        found: set[str] = set()
        for statement in self.body:
            for node in ast.walk(statement):
                match node:
                    case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                        found.add(name)
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                        found.add(name)
                    case ast.alias(name=name):
                        found.update(name.split("."))
        return frozenset(name for name in found if name.isascii() and meta(name) is None)

    @property
    def expression(self) -> ast.expr | None:
        """The expression that the pattern is, where it is one."""
        match self.body:
            case [ast.Expr(value=value)]:
                return value
        return None

    @property
    def argument(self) -> ast.keyword | None:
        """The keyword argument that `name=value` may also mean."""
        match self.body:
            case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
                return ast.keyword(arg=name, value=value)
        return None


def meta(name: object) -> Meta | None:
    """The metavariable that an identifier of a pattern stands for."""
    if isinstance(name, str) and name.startswith("__uky_"):
        if name.startswith(_ONE):
            return Meta(name[len(_ONE) :], False)
        if name.startswith(_RUN):
            return Meta(name[len(_RUN) :], True)
    return None


def run_of(node: ast.AST) -> Meta | None:
    """The `$$$X` that an argument, element, statement or parameter of a pattern stands for."""
    match node:
        case (
            ast.Expr(value=ast.Starred(value=ast.Name(id=name)))
            | ast.Expr(value=ast.Name(id=name))
            | ast.Starred(value=ast.Name(id=name))
            | ast.Name(id=name)
            | ast.keyword(arg=None, value=ast.Name(id=name))
            | ast.arg(arg=name)
        ):
            found = meta(name)
            return found if found and found.run else None
    return None


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """Read a pattern, or a template, which is written alike. ValueError says why one is no Python."""
    text = textwrap.dedent(source.replace("\r\n", "\n").replace("\r", "\n")).strip("\n").rstrip()
    problem = UnreadableError("invalid syntax")
    for star in ("*", "", "**"):
        placed = _META.sub(lambda match, star=star: _placeholder(match, star), text)  # type: ignore[misc]
        try:
            return Pattern(source, placed, tuple(parse(placed).body))
        except UnreadableError as error:
            problem = error if star == "*" else problem
    raise ValueError(f"is no Python (line {problem.line}): {problem.msg}")


def part(whole: Pattern, node: ast.AST) -> Pattern:
    """A part of a pattern as one of its own; `node` has a place in the text."""
    starts = [0, *(match.end() for match in re.finditer("\n", whole.placed))]

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(whole.placed[starts[line - 1] :].encode()[:column].decode())

    start = offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
    end = offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    text = whole.placed[start:end]
    try:
        return Pattern(text, text, tuple(parse(text).body))
    except UnreadableError:
        return Pattern(text, f"({text})", tuple(parse(f"({text})").body))


def _placeholder(match: re.Match[str], star: str) -> str:
    if match["skip"] is not None:
        return match[0]
    if match["dollars"] == "$":
        return f"{_ONE}{match['name']}" if match["name"] else match[0]
    return f"{star}{_RUN}{match['name'] or '_'}"


def metavariables(text: str) -> frozenset[str]:
    """The names that a pattern or template binds or uses, without `$`; `$_` is none."""
    names = (match["name"] for match in _META.finditer(text) if match["skip"] is None and match["dollars"])
    return frozenset(name for name in names if name and name != "_")


def check_pattern(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no usable pattern."""
    read = pattern(text)
    if not read.body:
        raise ValueError("is empty")
    if all(
        run_of(statement) or (isinstance(statement, ast.Expr) and _bare(statement.value)) for statement in read.body
    ):
        raise ValueError("matches everything")


def _bare(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and meta(node.id) is not None


def check_code(text: str) -> None:
    """Raise ValueError, with a plain message, where a text with metavariables is no Python. Nothing at all passes."""
    pattern(text)


def check_value(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no single Python expression."""
    try:
        parse_expression(f"(\n{text}\n)")
        parse_expression(text.strip())
    except UnreadableError as error:
        raise ValueError(f"is no Python expression: {error.msg}") from None
