"""A shell script's simple commands in the order of the text, with what is known of its variables put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from patcher.check.scripts.words import Computed, Document, Operator, Text, Unfinished, Variable, Word, tokens

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^]]*\])?(\+?)=")
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_BETWEEN = frozenset({"then", "else", "elif", "do", "time", "!", "{", "}", "[[", "]]", "in", "function", "coproc"})
_REDIRECTS = frozenset({"<", ">", ">>", "<&", ">&", "&>", "&>>", ">|", "<<<"})
_MANY = 64
"""How many texts one variable may hold. A guess: a script sets a name in a few branches at most."""
_LONGEST = 20_000
"""Characters of a word that are known; `A=$A$A`, forty times, would be more than any machine has memory for."""
_MOST_ELEMENTS = 2000
"""Elements of one array. A guess far above what a command line has."""


@dataclass(frozen=True, slots=True)
class Field:
    """One word of a command as the shell passes it. What is not known stands in it as `${name}` or `$(…)`."""

    text: str
    line: int

    @property
    def known(self) -> bool:
        return "${" not in self.text and "$(" not in self.text


@dataclass(frozen=True, slots=True)
class Command:
    """`assignments` stand before it, and hold for it alone if there are words."""

    words: tuple[Field, ...]
    assignments: tuple[tuple[str, Field], ...]
    documents: tuple[Document, ...] = ()
    target: str = ""
    """The file that its output goes to."""


@dataclass(frozen=True, slots=True)
class Misread:
    """From `line` on the text is no shell script that is understood."""

    line: int


@dataclass(slots=True)
class _Building:
    words: list[Word] = field(default_factory=list)
    arrays: dict[int, list[Word]] = field(default_factory=dict)
    """Elements by the place of the assignment among `words`."""
    documents: list[Document] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)


def commands(text: str, line: int = 1) -> Iterator[Command | Misread]:
    """The commands of a script; those of functions and branches too, as if all ran."""
    script = _Script()
    building, array, redirect = _Building(), None, ""
    pending: list[_Building] = []
    for token in tokens(text, line):
        match token:
            case Unfinished(line=at):
                yield Misread(at)
                return
            # `args=(a b)`
            case Operator(text="=("):
                array = building.arrays.setdefault(len(building.words) - 1, [])
            case Word() if array is not None:
                array.append(token)
            case Operator(text=sign) if array is not None:
                if sign == ")":
                    array = None
            case Word() if redirect:
                building.redirects.append((redirect, token))
                redirect = ""
            case Word():
                building.words.append(token)
            case Operator(text=sign) if sign in _REDIRECTS:
                redirect = sign
            case Document():
                (pending[-1] if pending else building).documents.append(token)
            case Operator(text=sign):
                if building.words:
                    pending.append(building)
                building, redirect = _Building(), ""
                if sign == "\n":
                    continue
        # A command is complete when the line ends, since here-documents follow the line.
        if isinstance(token, Word) or (isinstance(token, Operator) and token.text == "\n"):
            ready, pending = pending, []
            for done in ready:
                yield from script.finish(done)
    for done in [*pending, *([building] if building.words else [])]:
        yield from script.finish(done)


class _Script:
    """The variables that the script has set so far. A name set within a branch may hold any of several texts."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[Field, ...]] = {}
        self._arrays: dict[str, tuple[Field, ...]] = {}
        self._depth = 0

    def finish(self, building: _Building) -> Iterator[Command]:
        words = list(building.words)
        offset = 0
        while words and (plain := words[0].plain) is not None:
            if plain in _OPENING:
                self._depth += 1
            elif plain in _CLOSING:
                self._depth -= 1
            elif plain not in _BETWEEN:
                break
            words, offset = words[1:], offset + 1
            # `for x in a b c` sets x and runs nothing.
            if plain in ("for", "case", "select", "function"):
                return
        if not words:
            return
        assignments: list[tuple[str, Field]] = []
        while words and (split := _assignment(words[0])) is not None:
            name, more, value = split
            index = offset
            words, offset = words[1:], offset + 1
            if (elements := building.arrays.get(index)) is not None:
                self._set_array(name, elements, add=more)
            else:
                assignments.append((name, self._value(value, name, add=more)))
        if not words:
            for name, held in assignments:
                self._set(name, held)
        yielded = tuple(field for word in words for field in self.fields(word))
        if words and words[0].plain in ("export", "declare", "typeset", "local", "readonly"):
            self._declare(words[1:], building, offset + 1)
        target = next((self._joined(word) for sign, word in building.redirects if sign in (">", ">>")), "")
        yield Command(yielded, tuple(assignments), tuple(building.documents), target)

    def _declare(self, words: list[Word], building: _Building, offset: int) -> None:
        for index, word in enumerate(words, offset):
            if (split := _assignment(word)) is not None:
                if (elements := building.arrays.get(index)) is not None:
                    self._set_array(split[0], elements, add=split[1])
                else:
                    self._set(split[0], self._value(split[2], split[0], add=split[1]))

    def known(self, name: str) -> Field | None:
        """The one text that a variable holds."""
        found = self._texts.get(name, ())
        return found[0] if len(found) == 1 else None

    def _set(self, name: str, value: Field) -> None:
        # Within `if` or a loop the earlier text may still hold.
        earlier = self._texts.get(name, ()) if self._depth > 0 else ()
        self._texts[name] = (*(one for one in earlier if one.text != value.text), value)[-_MANY:]

    def _set_array(self, name: str, elements: list[Word], *, add: bool) -> None:
        new = tuple(field for word in elements for field in self.fields(word))
        earlier = self._arrays.get(name, ()) if add or self._depth > 0 else ()
        self._arrays[name] = (*earlier, *new)[:_MOST_ELEMENTS]

    def _value(self, value: Word, name: str, *, add: bool) -> Field:
        text = self._joined(value)
        if add and (before := self.known(name)) is not None:
            text = before.text + text if len(before.text) < _LONGEST else "$(…)"
        return Field(text, value.line)

    def _joined(self, word: Word) -> str:
        """The word as one text: what an assignment or a quoted word makes of it."""
        text = "".join(self._single(part) for part in word.parts)
        return text if len(text) <= _LONGEST else "$(…)"

    def _single(self, part: Text | Variable | Computed) -> str:
        match part:
            case Text(text=text):
                return text
            case Computed():
                return "$(…)"
            case Variable(name=name, default=default):
                if (value := self.known(name)) is not None:
                    return value.text
                # `${MODEL:-Qwen/Qwen2}`: the default holds unless the script sets the name. The environment may, which
                # is not known.
                if name not in self._texts and default is not None and "$" not in default:
                    return default.strip("\"'")
                return f"${{{name}}}"

    def fields(self, word: Word) -> Iterator[Field]:
        """What the shell passes for a word: arrays become one field an element, unquoted texts are split."""
        match word.parts:
            case (Variable(name=name, every=True),) if name in self._arrays:
                yield from self._arrays[name]
            case (Text(text="", quoted=True), Variable(name=name, every=True)) if name in self._arrays:
                yield from self._arrays[name]
            case (Variable(name=name, quoted=False, every=False),) if name in self._texts:
                for value in self._texts[name]:
                    for text in _split(value.text):
                        yield Field(text, value.line)
            case (Variable(quoted=False, default=str(default)),) if "$" not in default:
                for text in _split(default.strip("\"'")):
                    yield Field(text, word.line)
            case _:
                yield Field(self._joined(word), word.line)


def _split(text: str) -> list[str]:
    """The words of a text that an unquoted variable holds; quotes in it are kept by the shell, and meant to go."""
    import shlex

    if "'" in text or '"' in text:
        try:
            return shlex.split(text)
        except ValueError:
            return text.split()
    return text.split()


def _assignment(word: Word) -> tuple[str, bool, Word] | None:
    """`NAME=value` or `NAME+=value` taken apart."""
    first = word.parts[0]
    if not isinstance(first, Text) or first.quoted:
        return None
    found = _ASSIGNMENT.match(first.text)
    if found is None:
        return None
    rest = first.text[found.end() :]
    parts = (Text(rest), *word.parts[1:]) if rest else word.parts[1:]
    return found[1], bool(found[3]), replace(word, parts=parts or (Text(""),))
