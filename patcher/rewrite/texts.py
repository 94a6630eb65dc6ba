"""Texts as recording compares them: what a hand wrote behind its markers, and what counts as the same."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterable
from difflib import SequenceMatcher

from patcher.rewrite.marker import marker_pattern, markers, split, split_whole
from patcher.worktree import python


def without_ids(text: str, word: str) -> str:
    """The text without the markers behind its lines that name records, as edits in the style `clean` leave them."""
    return re.sub(rf"[ \t]*# {re.escape(word)}\[[^\]\n]*\]$", "", text, flags=re.MULTILINE)


def remarks(text: str, word: str) -> tuple[tuple[int, str], ...]:
    """What a hand wrote behind its markers, by line from 1: `# Uky: the cluster has no InfiniBand`."""
    pattern = marker_pattern(word)
    lines = split(text)
    written = []
    for one in markers(text, word):
        found = pattern.search(lines[one.line - 1]) if one.line <= len(lines) else None
        words = lines[one.line - 1][found.end() :].lstrip(" \t:-,.，：").strip() if found else ""
        if words:
            written.append((one.line, words))
    return tuple(written)


def same(one: str, two: str, file: str = "") -> bool:
    """Whether two texts are equal but for blank lines, and, of a `file` of Python, but for its layout.

    `start(port, timeout=1)` over one line is the same as over three, `'a'` as `"a"`, a docstring as one indented anew.
    """
    if _dense(one) == _dense(two):
        return True
    if not file.endswith(".py"):
        return False
    try:
        trees = [ast.dump(tree_of(text)) for text in (one, two)]
        return trees[0] == trees[1] and _comments(one) == _comments(two)
    except (python.UnreadableError, tokenize.TokenError, RecursionError, IndentationError):
        return False


def tree_of(text: str) -> ast.Module:
    """A text's syntax, its docstrings, and other strings that are statements, without white space that says nothing: a
    formatter indents them anew.

    Raises python.UnreadableError."""
    tree = python.parse(text)
    for node in ast.walk(tree):
        words = node.value if isinstance(node, ast.Expr) else None
        if isinstance(words, ast.Constant) and isinstance(words.value, str):
            words.value = "\n".join(_dense(inspect.cleandoc(words.value)))
    return tree


def with_blank_lines_of(text: str, other: str) -> str:
    """The text with the other's blank lines between lines that follow one another in both."""
    mine, theirs = _spaced(text), _spaced(other)
    lines, others = ([line.rstrip("\r\n") for line, _ in side] for side in (mine, theirs))
    above = [gap for _, gap in mine]
    for i, j, count in SequenceMatcher(None, lines, others, autojunk=False).get_matching_blocks():
        for step in range(count):
            # The gap above a line belongs to it and to the line before, so both must be the same on both sides.
            if step > 0 or (i == 0 and j == 0):
                above[i + step] = theirs[j + step][1]
    return "".join(gap + line for (line, _), gap in zip(mine, above, strict=True)) or text


def _spaced(text: str) -> list[tuple[str, str]]:
    """The lines that are not blank, with their ends, each with the blank lines above it."""
    found: list[tuple[str, str]] = []
    gap = ""
    for line in split_whole(text):
        if line.strip():
            found.append((line, gap))
            gap = ""
        else:
            gap += line
    return found


def filled(lines: Iterable[str]) -> list[str]:
    """The lines that are not blank, without blanks at their ends."""
    return [line.rstrip() for line in lines if line.strip()]


def _dense(text: str) -> list[str]:
    return filled(split(text))


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT]
