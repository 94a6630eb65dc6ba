"""Python that somebody else wrote, as syntax: the one place that parses it, with limits.

A file may nest so deeply that whoever walks through its syntax runs out of stack (`1+1+...` of 20,000 terms), and
some interpreters' own parsers crash on such a file. Here it is refused instead, with the line and the reason, so that
it costs a finding and not the command.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate

MOST_BYTES = 4 << 20
"""The most that a Python file may hold. The largest of 10,000 has 0.76 MB."""
DEEPEST = 150
"""The most levels of syntax in one file. Of 10,000 files of verl, vLLM and Python's own library the deepest has 87, and
all but two have 41 or fewer."""

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_WITHOUT_BLOCKS = frozenset(
    (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Import, ast.ImportFrom, ast.Raise)
)
_WORD = bytes({*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *range(0x80, 0x100)})
_WITHOUT_SIGNS = 8
"""A guess above the levels that a statement and the arguments of a function have by themselves."""
_CHAIN_BYTES = 1 << 14
"""A text that is shorter cannot nest so deeply that a parser crashes."""
_LONGEST_CHAIN = 5000
"""The parsers before Python 3.11 may crash on one of 20,000."""
_LONGEST_FOR_OTHERS = 1000
"""For a parser other than Python's. libcst crashes on 2,500 brackets in one another and on 20,000 chained terms."""
_SIGNS = 800
"""Of 7,310 files of verl and vLLM none has more than 350 `and` and `or`, or 553 strings that may be joined."""
_UNSEEN = (
    (re.compile(r"\b(?:and|or)\b"), _SIGNS),
    (re.compile(r"""["']\s*[rbfuRBFU]{0,2}["']"""), _SIGNS),
    (re.compile(r"\((?:\s*(?:\#[^\n]*\n\s*)*\(){20}"), 0),
)
"""What is one level in Python's own syntax and many in libcst's: `a and b and c`, `"a" "b" "c"`, `(((a)))`."""
_TOKEN = re.compile(
    rb"""[rbfuRBFU]{0,2}(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    rb"""|\#[^\n]*|\\\r?\n|[\r\n]+|[()\[\]{}]|[,;]|\w+|[^\s\w]""",
    re.DOTALL,
)


TOO_DEEP = "it nests too deeply"


class UnreadableError(SyntaxError):
    """A text that is no Python, or Python of a kind that nobody writes. `line` counts from 1."""

    def __init__(self, why: str, line: int = 1) -> None:
        super().__init__(why)
        self.line = max(line, 1)

    def __str__(self) -> str:
        return f"{self.msg} (line {self.line})"


def parse(source: bytes | str) -> ast.Module:
    """The syntax of a file, without the warnings that are its author's.

    Raises:
        UnreadableError: it is no Python, or larger or deeper nested than is looked at.
    """
    return _parsed(source, "exec")  # type: ignore[return-value]


def parse_expression(source: bytes | str) -> ast.expr:
    """The syntax of one expression, such as a quoted annotation. Raises UnreadableError."""
    tree = _parsed(source, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def require_shallow(source: str) -> None:
    """Raises UnreadableError for Python that is too deep for another parser: libcst, which crashes the process then.

    Deeper than `DEEPEST` in Python's own syntax is too deep. Where that does not show it, a text passes if no chain in
    it has more parts than `_LONGEST_FOR_OTHERS`: one with `type X = int` before Python 3.12, or with very many `and`.
    What is no Python passes too, as the other parser tells what is wrong.
    """
    try:
        parse(source)
    except UnreadableError as error:
        if error.msg == TOO_DEEP or len(source) > MOST_BYTES:
            raise
    else:
        if not any(len(sign.findall(source)) > most for sign, most in _UNSEEN):
            return
    _require_short_chains(_bytes(source), _LONGEST_FOR_OTHERS)


def _parsed(source: bytes | str, mode: str) -> ast.AST:
    if len(source) > MOST_BYTES:
        raise UnreadableError(f"it is larger than {MOST_BYTES >> 20} MB")
    try:
        if sys.version_info < (3, 11) and len(source) > _CHAIN_BYTES:  # Later parsers count for themselves.
            _require_short_chains(_bytes(source), _LONGEST_CHAIN)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode=mode)
    except UnreadableError:
        raise
    except SyntaxError as error:
        raise UnreadableError(error.msg or "it is no Python", error.lineno or 1) from None
    except (RecursionError, MemoryError):
        _require_short_chains(_bytes(source), DEEPEST)  # It tells the line, which these errors do not.
        raise _too_deep(1) from None
    except (ValueError, UnicodeError, LookupError) as error:  # Null bytes; surrogates; an unknown encoding.
        raise UnreadableError(str(error)) from None
    _require_shallow(tree, source)
    return tree


def _too_deep(line: int) -> UnreadableError:
    return UnreadableError(TOO_DEEP, line)


def _require_shallow(tree: ast.AST, source: bytes | str) -> None:
    """Raises UnreadableError where syntax nests deeper than `DEEPEST`, without a call for each level itself.

    Most statements have too few signs to do that: only the others are looked into, as it takes as long as parsing them.
    """
    signs = _signs(_bytes(source))
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise _too_deep(getattr(node, "lineno", 1))
        inner: list[ast.AST] = []
        if type(node) not in _WITHOUT_BLOCKS:
            inner = [one for name in _BLOCKS if name in node._fields for one in _block(node, name)]
            waiting += [(one, depth + 1) for one in inner]
        if _may_be_deep(node, inner[0] if inner else None, signs, DEEPEST - depth):
            _require_shallow_below(node, depth)


def _signs(source: bytes) -> list[int]:
    """How many characters that are no part of a word stand before each line and on it: of line n, at n."""
    lines = source.splitlines()
    # With `# coding: utf-7` a word may stand for anything.
    words = b"" if any(b"coding" in line for line in lines[:2]) else _WORD
    return [0, *accumulate(len(line.strip().translate(None, words)) for line in lines)]


def _block(node: ast.AST, name: str) -> list[ast.AST]:
    found = getattr(node, name, None)
    return found if isinstance(found, list) else []


def _may_be_deep(node: ast.AST, first: ast.AST | None, signs: Sequence[int], room: int) -> bool:
    """Whether what a statement has before its block may have more than so many levels.

    Each level takes a sign, `f(a=-b.c)`, but for few at the beginning: `with a` is three levels.
    """
    begin = getattr(node, "lineno", None)
    if begin is None:
        return not isinstance(node, ast.Module)
    end = getattr(first, "lineno", None) or getattr(node, "end_lineno", None) or begin
    marks = getattr(node, "decorator_list", None) if first is not None else None
    begin = min(begin, marks[0].lineno) if marks else begin
    last = len(signs) - 1
    if signs[min(end, last)] - signs[min(begin, last) - 1] + _WITHOUT_SIGNS <= room:
        return False
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))  # A docstring is no level.


def _require_shallow_below(node: ast.AST, depth: int) -> None:
    """The same for all that is below a statement but its blocks."""
    level = [one for name in node._fields if name not in _BLOCKS for one in _nodes(getattr(node, name, None))]
    if not isinstance(node, ast.stmt):  # A lambda, a comprehension or a handler: `body` may be an expression.
        level += [one for name in _BLOCKS for one in _nodes(getattr(node, name, None)) if isinstance(one, ast.expr)]
    while level:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep(min((getattr(one, "lineno", 1) for one in level), default=1))
        level = [below for one in level for name in one._fields for below in _nodes(getattr(one, name, None))]


def _nodes(value: object) -> Iterator[ast.AST]:
    if isinstance(value, ast.AST):
        if value._fields:  # Contexts and operators have none.
            yield value
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, ast.AST):
                yield one


def _bytes(source: bytes | str) -> bytes:
    return source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")


def _require_short_chains(content: bytes, longest: int) -> None:
    """Raises UnreadableError for a statement with a chain of more than so many parts, such as `a.b.c`.

    A chain goes on in brackets and over lines inside them, and ends at a comma of its own level.
    """
    line, chains = 1, [0]
    for found in _TOKEN.finditer(content):
        token = found.group()
        if token in (b"(", b"[", b"{"):
            chains.append(0)
        elif token in (b")", b"]", b"}") and len(chains) > 1:
            chains.pop()
            chains[-1] += 1
        elif token == b";" or (token[:1] in b"\r\n" and len(chains) == 1) or token == b",":
            chains[-1] = 0
        else:
            chains[-1] += 1
        if chains[-1] > longest or len(chains) > longest:
            raise _too_deep(line)
        line += token.count(b"\n")
