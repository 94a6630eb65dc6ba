"""The lexer of shell scripts: text -> words and operators, with quotes, expansions, comments, arrays and here-documents
told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
_PARAMETER = re.compile(r"([A-Za-z_]\w*)(\[[@*]\])?(?::?[-=](.*))?", re.DOTALL)
_OPERATORS = ("<<<", "<<-", "&>>", ";;&", "&&", "||", ";;", ";&", "<<", ">>", "<&", ">&", "&>", ">|", "|&")
_SINGLE = "\n;&|<>()"
_LONG = 1000
"""Characters from which on a text is not put together with the next, which would copy it again and again."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`, `${name:-default}`; `every`: `${name[@]}`."""

    name: str
    quoted: bool = False
    every: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """What only running the script tells: `$(…)`, `$1`, `${name//a/b}`."""


Part: TypeAlias = Text | Variable | Computed


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[Part, ...]
    line: int

    @property
    def plain(self) -> str | None:
        """The word if it is written without quotes or expansions."""
        match self.parts:
            case (Text(text=text, quoted=False),):
                return text
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Operator:
    """`=(` opens an array's elements."""

    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """The body of a here-document; `line` is its first."""

    body: str
    line: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The text ends within what began on `line`."""

    line: int


Token: TypeAlias = Word | Operator | Document | Unfinished


class _CutError(Exception):
    """The text ends within a quote or an expansion that began on `line`."""

    def __init__(self, line: int) -> None:
        self.line = line


def tokens(text: str, line: int) -> Iterator[Token]:
    """The tokens of a script whose first line has the number `line`."""
    lexer = _Lexer(text.replace("\r\n", "\n"), line)
    try:
        yield from lexer.run()
    except _CutError as cut:
        yield Unfinished(cut.line)


class _Lexer:
    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.line = line
        self.at = 0
        self._parts: list[Part] = []
        self._begun = line
        self._awaited: list[tuple[str, bool]] = []
        """Ends of the here-documents that follow this line, and whether tabs before them are dropped."""
        self._ending: bool | None = None

    def run(self) -> Iterator[Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self._escape()
            elif char in " \t":
                yield from self._word()
                self.at += 1
            elif char == "#" and not self._parts:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "'":
                self._single(self.at + 1)
            elif char == '"':
                self._double()
            elif char in "$`":
                self._add(self._expansion(quoted=False))
            elif char in _SINGLE:
                yield from self._operator(char)
            else:
                end = self.at + 1
                while end < len(self.text) and self.text[end] not in " \t\\'\"$`" + _SINGLE:
                    end += 1
                self._add(Text(self.text[self.at : end]))
                self.at = end
        yield from self._word()

    def _add(self, part: Part) -> None:
        if not self._parts:
            self._begun = self.line
        match self._parts, part:
            # Pieces of one unquoted text are one part, so that `NAME=value` is seen as an assignment.
            case [*_, Text(text=before, quoted=False)], Text(text=more, quoted=False) if len(before) < _LONG:
                self._parts[-1] = Text(before + more)
            case _:
                self._parts.append(part)

    def _word(self) -> Iterator[Token]:
        if self._parts:
            word = Word(tuple(self._parts), self._begun)
            self._parts = []
            if self._ending is not None:
                ending = "".join(part.text for part in word.parts if isinstance(part, Text))
                self._awaited.append((ending, self._ending))
                self._ending = None
            else:
                yield word

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "\n":
            self.line += 1
        elif following:
            self._add(Text(following, quoted=True))
        self.at += 2

    def _operator(self, char: str) -> Iterator[Token]:
        only = self._parts[0] if len(self._parts) == 1 else None
        if char == "(" and isinstance(only, Text) and not only.quoted and _ASSIGNS.fullmatch(only.text):
            yield from self._word()
            yield Operator("=(")
            self.at += 1
            return
        text = next((one for one in _OPERATORS if self.text.startswith(one, self.at)), char)
        # `2>file`: the number is part of the redirect and no word.
        if text[0] in "<>" and isinstance(only, Text) and only.text.isdigit():
            self._parts = []
        yield from self._word()
        self.at += len(text)
        if text in ("<<", "<<-"):
            self._ending = text == "<<-"
            return
        yield Operator(text)
        if text == "\n":
            self.line += 1
            yield from self._documents()

    def _documents(self) -> Iterator[Token]:
        for ending, tabs in self._awaited:
            body: list[str] = []
            first = self.line
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                row = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                self.line += 1
                if (row.lstrip("\t") if tabs else row) == ending:
                    break
                body.append(row)
            yield Document("\n".join(body), first)
        self._awaited = []

    def _single(self, start: int) -> None:
        end = self.text.find("'", start)
        if end < 0:
            raise _CutError(self.line)
        self._add(Text(self.text[start:end], quoted=True))
        self.line += self.text.count("\n", start, end)
        self.at = end + 1

    def _double(self) -> None:
        opened = self.line
        self.at += 1
        self._add(Text("", quoted=True))
        while True:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise _CutError(opened)
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('$`"\\\n'):
                following = self.text[self.at + 1]
                self.line += following == "\n"
                self._add(Text("" if following == "\n" else following, quoted=True))
                self.at += 2
            elif char in "$`":
                self._add(self._expansion(quoted=True))
            else:
                self.line += char == "\n"
                self._add(Text(char, quoted=True))
                self.at += 1

    def _expansion(self, *, quoted: bool) -> Part:
        start, after = self.at, self.text[self.at + 1 : self.at + 2]
        if self.text[start] == "`":
            end = self.text.find("`", start + 1)
            if end < 0:
                raise _CutError(self.line)
            return self._computed(end + 1)
        # `$'...'`
        if after == "'" and not quoted:
            self._single(start + 2)
            return Text("", quoted=True)
        if after == "(":
            return self._computed(self._closing(start + 1, "(", ")"))
        if after == "{":
            end = self._closing(start + 1, "{", "}")
            inner = _PARAMETER.fullmatch(self.text, start + 2, end - 1)
            # `${name//a/b}`, `${#name}`, `${!name}`: what they give is not followed.
            if inner is None:
                return self._computed(end)
            self.at = end
            return Variable(inner[1], quoted, bool(inner[2]), inner[3])
        if named := _NAME.match(self.text, start + 1):
            self.at = named.end()
            return Variable(named[0], quoted)
        if after and after in "@*#?$!-0123456789":
            return self._computed(start + 2)
        self.at += 1
        return Text("$", quoted)

    def _computed(self, end: int) -> Computed:
        self.line += self.text.count("\n", self.at, end)
        self.at = end
        return Computed()

    def _closing(self, start: int, opening: str, closing: str) -> int:
        """The place after the bracket that closes the one at `start`; brackets within quotes do not count."""
        depth, at = 0, start
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif char == "'":
                at = self.text.find("'", at + 1)
                if at < 0:
                    break
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        raise _CutError(self.line)
