"""Disturb a source without changing its syntax tree: what editors, formatters and people do to a file."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
import warnings
from collections.abc import Collection

_COMMENTS = ("# keep", "# TODO: look at this again", "# noqa: E501", "# see the notes, (part 2]", '# it\'s "quoted"')
_PLAIN = re.compile(r"""^(["'])([^"'\\\r\n{}]*)\1$""")
_F_START = getattr(tokenize, "FSTRING_START", -1)
_F_END = getattr(tokenize, "FSTRING_END", -1)


def disturb(source: str, seed: int) -> str:
    """Another text with the same syntax tree: comments, blank lines, quotes, line breaks in brackets, CRLF."""
    random_ = random.Random(seed)
    text = "".join(_disturbed(source, random_))
    if random_.random() < 0.3:
        text = re.sub(r"\r\n|\r|\n", "\r\n", text)
    if random_.random() < 0.2:
        text = text.rstrip("\r\n")
    assert tree(text) == tree(source), f"seed {seed} changes the syntax tree"
    return text


def comment_every(source: str, lines: Collection[int]) -> str:
    """A comment above and behind every line named (from 1) that can have one."""
    above, behind = _places(source)
    result = []
    for number, line in enumerate(re.split(r"(?<=\n)", source.replace("\r\n", "\n")), 1):
        body = line.rstrip("\n")
        indent = body[: len(body) - len(body.lstrip())]
        if number in lines and number in above:
            result.append(f"{indent}# a comment above\n")
        if number in lines and number in behind and body.strip():
            line = f"{body}  # a comment behind{line[len(body) :]}"
        result.append(line)
    text = "".join(result)
    assert tree(text) == tree(source)
    return text


def tree(source: str) -> str:
    """The syntax tree as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(source))


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(source, newline="").readline))


def _places(source: str) -> tuple[set[int], set[int]]:
    """The lines above which, and behind which, a comment may be put."""
    above, behind, commented = {1}, set(), set()
    depth = 0
    for token in _tokens(source.replace("\r\n", "\n")):
        depth += (token.type == _F_START) - (token.type == _F_END)
        if token.type == tokenize.COMMENT:
            commented.add(token.start[0])
        if token.type in (tokenize.NL, tokenize.NEWLINE) and not depth:
            above.add(token.end[0] + (token.end[1] > 0))
            if token.start[0] not in commented:
                behind.add(token.start[0])
    return above, behind


def _disturbed(source: str, random_: random.Random) -> list[str]:
    """The pieces of the text, some of them changed; rates are such that a file of any length is disturbed."""
    source = source.replace("\r\n", "\n")
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    rate = random_.choice((0.02, 0.1, 0.4))
    pieces: list[str] = []
    done = depth = strings = 0
    commented = False
    for token in _tokens(source):
        if token.type in (tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT):
            continue
        start = min(starts[token.start[0] - 1] + token.start[1], len(source))
        end = min(starts[token.end[0] - 1] + token.end[1], len(source))
        pieces.append(source[done:start])
        text, done = source[start:end], end
        strings += (token.type == _F_START) - (token.type == _F_END)
        if token.type == tokenize.COMMENT:
            commented = True
        elif token.type == tokenize.STRING and random_.random() < rate:
            text = _requoted(text)
        elif token.type == tokenize.OP and not strings:
            depth += (text in "([{") - (text in ")]}")
            if depth and text in "([{," and random_.random() < rate:
                text += random_.choice((" ", "\n", "\n        ", "  # between\n    "))
        elif token.type in (tokenize.NL, tokenize.NEWLINE) and not strings and text:
            if not commented and random_.random() < rate:
                pieces.append("  " + random_.choice(_COMMENTS))
            commented = False
            if random_.random() < rate:
                indent = re.match(r"[ \t]*", source[done:])
                text += random_.choice(("\n", f"{indent[0] if indent else ''}{random_.choice(_COMMENTS)}\n"))
        pieces.append(text)
    pieces.append(source[done:])
    return pieces


def _requoted(text: str) -> str:
    plain = _PLAIN.match(text)
    if not plain:
        return text
    quote = "'" if plain[1] == '"' else '"'
    return f"{quote}{plain[2]}{quote}"
