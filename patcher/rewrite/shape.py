"""Where comments may stand: the physical lines of complete logical lines, looked at through their tokens."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

_QUIET = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT}
_OPENS, _CLOSES = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)

UNREADABLE = (tokenize.TokenError, SyntaxError)
"""What `shape` raises where brackets or strings stay open."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Facts of some lines, by index from 0."""

    logical: tuple[tuple[int, int], ...]
    """For each line, the first and last line of the logical line that it belongs to."""
    above: tuple[bool, ...]
    """For each line, whether a comment line may be put above it."""
    behind: tuple[bool, ...]
    """For each line, whether a comment may be put at its end."""
    inside: tuple[bool, ...]
    """For each line, whether it begins inside a string."""
    comments: tuple[int | None, ...]
    """For each line, the column at which its comment begins."""
    tokens: tuple[str, ...]
    """The tokens that mean something, logical lines told apart."""


def shape(lines: Sequence[str]) -> Shape:
    """Look at complete logical lines, given without their ends. Indentation does not matter."""
    count = len(lines)
    above, behind, inside = [True] * count, [True] * count, [False] * count
    comments: list[int | None] = [None] * count
    logical: list[tuple[int, int]] = []
    tokens: list[str] = []
    depth = 0
    opened: list[int] = []
    # In brackets no indentation is looked at, so that any run of logical lines can be read.
    text = "(\n" + "".join(line + "\n" for line in lines) + ")\n"
    for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
        first, last = token.start[0] - 2, token.end[0] - 2
        if first < 0 or first >= count:
            continue
        if token.type == _OPENS:
            opened.append(first)
        elif token.type == _CLOSES:
            first = opened.pop()
        if token.type == tokenize.COMMENT:
            comments[first] = token.start[1]
        elif token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.NL:
            if depth == 0 and not opened:
                begun = logical[-1][1] + 1 if logical else 0
                logical += [(begun, first)] * (first + 1 - begun)
                if tokens and tokens[-1] != "\n":
                    tokens.append("\n")
            continue
        elif first != last:
            for index in range(first, last):
                behind[index] = above[index + 1] = False
                inside[index + 1] = True
        if token.type not in _QUIET:
            tokens.append(token.string)
    for index, line in enumerate(lines):
        if line.endswith("\\") and comments[index] is None:
            behind[index] = False
            if index + 1 < count:
                above[index + 1] = False
    return Shape(tuple(logical), tuple(above), tuple(behind), tuple(inside), tuple(comments), tuple(tokens))
