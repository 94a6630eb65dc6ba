"""Parsing of Python that somebody else wrote, with limits on size and depth. No other module calls `ast.parse` on it.

A file can nest so deeply (`1+1+...` with 20,000 terms) that a function which walks through its syntax runs out of
stack; some parsers even crash the process. Such a file is refused here, with line and reason, so that the command
reports one finding instead of dying.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate

MOST_BYTES = 4 << 20
"""The largest Python file that is parsed. The largest of 10,000 (see below) has 0.76 MB."""
DEEPEST = 150
"""The most levels of syntax in one file. Of 10,000 files of verl, vLLM and Python's own library the deepest has 87, and
all but two have 41 or fewer."""

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold further statements."""
_WITHOUT_BLOCKS = frozenset(
    (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Import, ast.ImportFrom, ast.Raise)
)
_WORD = bytes({*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *range(0x80, 0x100)})
_WITHOUT_SIGNS = 8
"""Levels that a statement can have without any sign (`with a` has three). A guess, above all that were seen."""
_CHAIN_BYTES = 1 << 14
"""A shorter text cannot nest so deeply that a parser crashes."""
_LONGEST_CHAIN = 5000
"""Parts of a chain. Python's parsers before 3.11 may crash at 20,000."""
_LONGEST_FOR_OTHERS = 1000
"""The same for another parser. libcst crashes on 2,500 nested brackets, and on a chain of 20,000."""
_SIGNS = 800
"""Occurrences in one file. Of 7,310 files of verl and vLLM none has more than 350 `and` and `or`, or more than 553
strings that may be joined."""
_DEEP_IN_LIBCST = (
    (re.compile(r"\b(?:and|or)\b"), _SIGNS),
    (re.compile(r"""["']\s*[rbfuRBFU]{0,2}["']"""), _SIGNS),
    (re.compile(r"\((?:\s*(?:\#[^\n]*\n\s*)*\(){20}"), 0),
)
"""What is one level in Python's syntax tree and many in libcst's, and how often a file may have it: `a and b and c`,
`"a" "b" "c"`, `(((a)))`."""
_TOKEN = re.compile(
    rb"""[rbfuRBFU]{0,2}(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    rb"""|\#[^\n]*|\\\r?\n|[\r\n]+|[()\[\]{}]|[,;]|\w+|[^\s\w]""",
    re.DOTALL,
)


TOO_DEEP = "it nests too deeply"


class UnreadableError(SyntaxError):
    """The text is no Python, too large or nests too deeply. `line` counts from 1."""

    def __init__(self, why: str, line: int = 1) -> None:
        super().__init__(why)
        self.line = max(line, 1)

    def __str__(self) -> str:
        return f"{self.msg} (line {self.line})"


def parse(source: bytes | str) -> ast.Module:
    """The syntax tree of a file. Its SyntaxWarnings are not shown: they are for its author.

    Raises:
        UnreadableError: it is no Python, too large, or nests too deeply.
    """
    return _parsed(source, "exec")  # type: ignore[return-value]


def parse_expression(source: bytes | str) -> ast.expr:
    """The syntax tree of one expression, such as a quoted annotation. Raises UnreadableError."""
    tree = _parsed(source, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def require_shallow(source: str) -> None:
    """Raise UnreadableError for Python that nests too deeply for libcst, which would crash the process.

    That is Python deeper than `DEEPEST`. Some texts need a second test: those that this interpreter cannot parse
    (`type X = int` before Python 3.12), and those with more levels in libcst than in Python's own tree. They pass if no
    chain has more than `_LONGEST_FOR_OTHERS` parts. So a text that is no Python passes: libcst tells what is wrong.
    """
    try:
        parse(source)
    except UnreadableError as error:
        if error.msg == TOO_DEEP or len(source) > MOST_BYTES:
            raise
    else:
        if not any(len(sign.findall(source)) > most for sign, most in _DEEP_IN_LIBCST):
            return
    _require_short_chains(_bytes(source), _LONGEST_FOR_OTHERS)


def _parsed(source: bytes | str, mode: str) -> ast.AST:
    if len(source) > MOST_BYTES:
        raise UnreadableError(f"it is larger than {MOST_BYTES >> 20} MB")
    try:
        if sys.version_info < (3, 11) and len(source) > _CHAIN_BYTES:  # Later parsers have a limit of their own.
            _require_short_chains(_bytes(source), _LONGEST_CHAIN)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode=mode)
    except UnreadableError:
        raise
    except SyntaxError as error:
        raise UnreadableError(error.msg or "it is no Python", error.lineno or 1) from None
    except (RecursionError, MemoryError):
        _require_short_chains(_bytes(source), DEEPEST)  # Raises with the line, which these errors do not have.
        raise _too_deep(1) from None
    except (ValueError, UnicodeError, LookupError) as error:  # Null bytes; surrogates; an unknown encoding.
        raise UnreadableError(str(error)) from None
    _require_shallow(tree, source)
    return tree


def _too_deep(line: int) -> UnreadableError:
    return UnreadableError(TOO_DEEP, line)


def _require_shallow(tree: ast.AST, source: bytes | str) -> None:
    """Raise UnreadableError if the tree is deeper than `DEEPEST`. It does not recurse itself.

    To walk through all of it takes as long as parsing. So only statements are looked into that have enough signs to be
    deep: see `_may_be_deep`.
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
    """Signs are characters that are no part of a word, and no space. At index n: how many there are up to line n."""
    lines = source.splitlines()
    # A file with `# coding: utf-7` writes signs as words (`+ACg-` is a bracket), so there every character counts.
    words = b"" if any(b"coding" in line for line in lines[:2]) else _WORD
    return [0, *accumulate(len(line.strip().translate(None, words)) for line in lines)]


def _block(node: ast.AST, name: str) -> list[ast.AST]:
    found = getattr(node, name, None)
    return found if isinstance(found, list) else []


def _may_be_deep(node: ast.AST, first: ast.AST | None, signs: Sequence[int], room: int) -> bool:
    """Whether the part of a statement before its block (`first` is that block's first node) may exceed `room` levels.

    Each level has a sign, as in `f(a=-b.c)`, but for a few at the beginning: `with a` has three levels and none.
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
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))  # A docstring: signs, no levels.


def _require_shallow_below(node: ast.AST, depth: int) -> None:
    """Raise UnreadableError if what is below `node`, without its blocks, exceeds `DEEPEST`. It goes level by level."""
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
    """Raise UnreadableError for a chain of more than `longest` parts (`a.b.c`, `1 + 2 + 3`), or for as many brackets.

    A chain is all between two commas, or ends of statements, on one level of brackets. It works on tokens, so that no
    parser is needed.
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
