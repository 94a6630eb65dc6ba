"""Patterns: Python with metavariables. Checked with `ast`, as records are read; compiled to libcst when one is made."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import libcst as cst

_T = TypeVar("_T")
_ONE, _RUN = "__uky_one_", "__uky_run_"
SKIPPED = r"""\#[^\r\n]*|"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'"""
_META = re.compile(rf"(?P<skip>{SKIPPED})|(?P<dollars>\$\$\$|\$)(?P<name>[A-Z_][A-Z0-9_]*)?", re.DOTALL)
PLACE = re.compile(rf"\*{{0,2}}({_ONE}|{_RUN})(\w*)")
"""A metavariable in a pattern's text."""


@dataclass(frozen=True, slots=True)
class Meta:
    """One metavariable; `name` is "_" where nothing is bound."""

    name: str
    run: bool


@lru_cache(maxsize=1024)
def meta_name(name: str) -> Meta | None:
    """The metavariable that an identifier of a pattern stands for."""
    if name.startswith(_ONE):
        return Meta(name[len(_ONE) :], False)
    return Meta(name[len(_RUN) :], True) if name.startswith(_RUN) else None


class Pattern:
    """A pattern as a libcst module in which a metavariable is a name of its own kind."""

    def __init__(self, module: cst.Module) -> None:
        from patcher.rewrite.syntax import statements, walk

        self.module = module
        self.body = [small for small, _ in statements(module)]
        names = (str(getattr(node, "value", "")) for node in walk(module) if type(node).__name__ == "Name")
        self.names = frozenset(name for name in names if name.isascii() and meta_name(name) is None)

    @cached_property
    def comments(self) -> bool:
        """Whether comments stand above the first statement."""
        lead = getattr(self.module.body[0], "leading_lines", ()) if self.module.body else ()
        return any(line.comment for line in (*self.module.header, *lead))

    @cached_property
    def expression(self) -> cst.BaseExpression | None:
        """The expression that the pattern is, where it is one."""
        import libcst as cst

        return self.body[0].value if len(self.body) == 1 and isinstance(self.body[0], cst.Expr) else None

    @cached_property
    def argument(self) -> cst.Arg | None:
        """The keyword argument that `name=value` may also mean."""
        import libcst as cst

        match self.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value)]:
                tight = cst.SimpleWhitespace("")
                return cst.Arg(value, keyword=name, equal=cst.AssignEqual(tight, tight))
        return None


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """The compiled pattern of a text, kept for the next time."""
    import libcst as cst

    return Pattern(_placed(source, cst.parse_module, cst.ParserSyntaxError))


def _placed(source: str, read: Callable[[str], _T], refused: type[Exception]) -> _T:
    """Read a pattern with names for its metavariables: a run as `*name`, else as `name`, else as `**name`."""
    text = source.replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()
    if text[:1] in {" ", "\t"}:  # `dedent` empties each line of blanks, and one may stand in a docstring.
        text = textwrap.dedent(text)
    problem: Exception | None = None
    for star in ("*", "", "**"):
        placed = _META.sub(lambda match, star=star: _placeholder(match, star), text)  # type: ignore[misc]
        try:
            return read(placed + "\n" if placed else "")
        except refused as error:
            problem = problem or error
    assert problem is not None
    raise problem


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


def check_code(text: str) -> list[ast.stmt]:
    """Raise ValueError, with a plain message, where a text with metavariables is no Python. Nothing at all passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _placed(text, ast.parse, SyntaxError).body
        except SyntaxError as error:
            raise ValueError(f"is no Python (line {error.lineno or 1}): {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"is no Python: {error}") from None


def check_pattern(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no usable pattern."""
    body = check_code(text)
    if not body:
        raise ValueError("is empty")
    if all(isinstance(statement, ast.Expr) and _bare(statement.value) for statement in body):
        raise ValueError("matches everything")


def _bare(node: ast.expr) -> bool:
    node = node.value if isinstance(node, ast.Starred) else node
    return isinstance(node, ast.Name) and meta_name(node.id) is not None


def check_value(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no single Python expression."""
    try:
        ast.parse(f"(\n{text}\n)", mode="eval")
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"is no Python expression: {getattr(error, 'msg', error)}") from None


def check_parameter(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no single parameter of a function."""
    refusal = "is no parameter, such as timeout: int = 600"
    match _statement(f"def f({text}\n): pass", refusal):
        case ast.FunctionDef(args=of) if (
            len([*of.posonlyargs, *of.args, *of.kwonlyargs]) + (of.vararg is not None) + (of.kwarg is not None) == 1
        ):
            return
    raise ValueError(refusal)


def check_base(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no single base or keyword of a class."""
    match _statement(f"class A({text}\n): pass", "is no base of a class"):
        case ast.ClassDef(bases=[_], keywords=[]) | ast.ClassDef(bases=[], keywords=[_]):
            return
    raise ValueError("is no base of a class")


def check_definition(text: str) -> None:
    """Raise ValueError, with a plain message, where a text is no single function or class."""
    body = check_code(text)
    if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise ValueError("is no single function or class")


def _statement(text: str, refusal: str) -> ast.stmt:
    try:
        return ast.parse(text).body[0]
    except (SyntaxError, ValueError):
        raise ValueError(refusal) from None
