"""Texts, tables and streams without their secrets: the one place through which everything goes that leaves.

A text is looked at as it stands, without its colours, and with what is escaped or encoded put plainly. What is found is
replaced by `***`; lines keep their numbers, and doing it twice changes nothing more.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Iterable, Iterator

from patcher.secrets import known
from patcher.secrets.assignments import find_assigned, lower
from patcher.secrets.contexts import find_in_context
from patcher.secrets.decoding import COLOURS, coloured, decoded, without_colours
from patcher.secrets.names import NONE, PASSWORD, rank
from patcher.secrets.prefilter import FindSigns, find_signs, stretches
from patcher.secrets.tables import find_columns
from patcher.secrets.values import HIDDEN, Span, hidden, line_end

_ROUNDS = 4
"""How often a part is looked at: what stands around `***` may only then be seen to be a secret, in two steps at most."""
_UNQUOTED = re.compile(r"\w(\\{0,15}[\"'])[ \t]{0,4}:[ \t]{0,4}\Z")
_CONTEXT = 12
"""Lines before a piece of a stream that are looked at with it: a name and its value may stand in lines that follow."""
_PIECE = 1 << 16
"""Characters of a long report that are searched for signs first."""
_LONGEST = 1 << 16
"""Characters of a line that a stream waits for before it gives out what is there."""
_USUAL = '"send": [{"path": "verl/key", "token": "x"}, "wandb": ["the api key: a token (b) and password=c"]'
"""A text with signs of secrets as reports have them in names of files, in keys and in sentences."""


_learnt: set[str] = set()
_here: list[Redactor] = []


def learn(values: Iterable[str]) -> None:
    """Values that `here` hides from now on, such as those that are sent to a host."""
    new = set(values) - _learnt
    if new:
        _learnt.update(new)
        _here.clear()


def here() -> Redactor:
    """The one for all that this process shows: it knows the secrets of this user, and those that were learnt."""
    if not _here:
        _here.append(Redactor(known.values_here(os.environ) | _learnt))
    return _here[0]


class Redactor:
    """Takes secrets out of text: those whose values are known, and what looks like one.

    `count`: how many so far; `recognised`: the values of those that would be known again where no name tells them.
    """

    def __init__(self, values: Iterable[str] = (), find: FindSigns = find_signs) -> None:
        """`find` may be a faster way to find `prefilter.SIGNS`, which this room, being sent to hosts, cannot have."""
        values = set(values)
        self._known, self._spellings = known.pattern(values), known.spellings(values)
        self._find = find
        self._harmless: set[str] = set()
        self.count = 0
        self.recognised: set[str] = set()

    def prepare(self) -> None:
        """Compile the patterns that a usual report needs, in some 10 ms, while something else is waited for."""
        self.text(_USUAL)

    def text(self, text: str) -> str:
        """`text` with `***` for each secret."""
        pieces, at = [], 0
        for begin, end in _merged(self._stretches(text)):
            pieces += [text[at:begin], self._part(text[begin:end])]
            at = end
        return "".join([*pieces, text[at:]])

    def _part(self, text: str) -> str:
        for _ in range(_ROUNDS):
            spans = list(_merged(self._spans(text)))
            if not spans:
                break
            shown = _without(text, spans)
            if shown == text:
                break
            for begin, end in spans:
                self._note(text[begin:end])
            text = shown
        return text

    def _note(self, value: str) -> None:
        self.count += 1
        if known.is_telling(value):
            self.recognised.add(value)

    def document(self, text: str) -> str:
        """The same for a text that may be JSON, which stays JSON. Where nothing is hidden, not a byte changes."""
        if text[:1] not in ("{", "["):
            return self.text(text)
        if not self._has_signs(text):
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        found = self.value(value)
        if found == value:
            return text
        indent = len(text) - len(text[1:].lstrip()) - 2 if text[1:2] == "\n" else None
        escaped = text.isascii() and "\\u" in text
        return json.dumps(found, ensure_ascii=escaped, indent=indent) + text[len(text.rstrip()) :]

    def _has_signs(self, text: str) -> bool:
        """Whether there is anything to look at, which a long report mostly shows at its beginning already."""
        texts = (text[:_PIECE], text) if len(text) > _PIECE else (text,)
        return any(next(self._stretches(one), None) is not None for one in texts)

    def content(self, content: bytes) -> bytes:
        """The same for bytes of whatever kind."""
        return self.text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """The same for texts in tables and lists, and for all that stands under a secret name."""
        self._harmless.clear()
        return self._value(value, NONE)

    def _short(self, text: str) -> str:
        """The same for a text of a table, whose names and paths come again and again."""
        if text in self._harmless:
            return text
        shown = self.text(text)
        if shown == text:
            self._harmless.add(text)
        return shown

    def _value(self, value: Any, kind: str) -> Any:
        if isinstance(value, str):
            if not (kind and hidden(kind, value)):
                return self._short(value)
            self._note(value)
            return HIDDEN
        if isinstance(value, Mapping):
            return {
                (self._short(name) if isinstance(name, str) else name): self._value(
                    inner, rank(name) if isinstance(name, str) else NONE
                )
                for name, inner in value.items()
            }
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self._value(inner, rank(name)) for name, inner in zip(value._fields, value)))
        if isinstance(value, (list, tuple)):
            return type(value)([self._value(inner, kind) for inner in value])
        if kind == PASSWORD and isinstance(value, (int, float)) and not isinstance(value, bool):
            self._note(str(value))
            return HIDDEN
        return value

    def _stretches(self, text: str) -> Iterator[Span]:
        """The lines of a text that have to be looked at."""
        if not coloured(text):
            yield from self._plain_stretches(text)
            return
        yield from self._lines_with_known(text)
        plain = COLOURS.sub("", text)
        here = there = 0  # Beginnings of the same line in both.
        for begin, end in _merged(self._plain_stretches(plain)):
            places = []
            for place in (begin, end):
                for _ in range(plain.count("\n", here, place)):
                    there = line_end(text, there) + 1
                here = place
                places.append(min(there, len(text)) if place < len(plain) else len(text))
            yield places[0], places[1]

    def _plain_stretches(self, text: str) -> Iterator[Span]:
        yield from stretches(text, lower(text), self._find)
        yield from self._lines_with_known(text)
        for begin, views in decoded(text):
            inner = views[-1].text
            if (
                next(self._known_in(inner), None) is not None
                or next(stretches(inner, lower(inner), self._find), None) is not None
            ):
                end = begin + len(views[0].source)
                yield text.rfind("\n", 0, max(0, begin - 2000)) + 1, line_end(text, min(len(text), end + 2000)) + 1

    def _lines_with_known(self, text: str) -> Iterator[Span]:
        for begin, end in self._known_in(text):
            yield text.rfind("\n", 0, begin) + 1, min(len(text), line_end(text, end) + 1)

    def _known_in(self, text: str) -> Iterator[Span]:
        if self._known is None or (
            len(self._spellings) < 80 and not any(spelling in text for spelling in self._spellings)
        ):
            return iter(())
        return (found.span() for found in self._known.finditer(text))

    def _spans(self, text: str) -> Iterator[Span]:
        if coloured(text):
            yield from self._known_in(text)
            view = without_colours(text)
            yield from (view.back(span) for span in self._plain_spans(view.text))
        else:
            yield from self._plain_spans(text)

    def _plain_spans(self, text: str) -> Iterator[Span]:
        yield from self._found(text)
        for begin, views in decoded(text):
            for span in self._found(views[-1].text):
                for view in reversed(views):
                    span = view.back(span)
                yield begin + span[0], begin + span[1]

    def _found(self, text: str) -> Iterator[Span]:
        yield from self._known_in(text)
        small = lower(text)
        yield from find_in_context(text, small)
        yield from find_assigned(text, small)
        yield from find_columns(text, small)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """In order, those that overlap as one."""
    begin = end = 0
    for first, last in sorted(span for span in spans if span[0] < span[1]):
        if first < end:
            end = max(end, last)
            continue
        if end > begin:
            yield begin, end
        begin, end = first, last
    if end > begin:
        yield begin, end


def _without(text: str, spans: list[Span]) -> str:
    pieces, at = [], 0
    for begin, end in spans:
        pieces.append(text[at:begin])
        secret = text[begin:end]
        put = HIDDEN if "\n" not in secret else re.sub(r"[^\n\r]+", HIDDEN, secret)
        # A number of JSON becomes a string, so that it stays JSON: `"pin": 1234`.
        quoted = _UNQUOTED.search(text, max(0, begin - 30), begin)
        pieces.append(quoted[1] + put + quoted[1] if quoted else put)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


class Following:
    """A text that comes piece by piece, without its secrets, wherever it is cut."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._before: list[str] = []

    def feed(self, text: str) -> str:
        """What can be given out now: whole lines, and of a very long line what is there."""
        self._held += text
        cut = self._held.rfind("\n") + 1
        if not cut and len(self._held) > _LONGEST:
            cut = len(self._held)
        whole, self._held = self._held[:cut], self._held[cut:]
        return self._out(whole)

    def rest(self) -> str:
        """What is left when nothing more comes."""
        whole, self._held = self._held, ""
        return self._out(whole)

    def _out(self, text: str) -> str:
        if not text:
            return ""
        before = "".join(self._before)
        shown = self._redactor.text(before + text)
        count = before.count("\n")
        self._before = self._kept((before + text).split("\n"))
        return "\n".join(shown.split("\n")[count:])

    def _kept(self, lines: list[str]) -> list[str]:
        """The lines that belong to what comes next: the last ones, and the head of a private key that has not ended."""
        whole = [f"{line}\n" for line in lines[:-1]]
        kept = whole[-_CONTEXT:]
        text = "".join(whole[-400:])
        begun = text.rfind("-----BEGIN ")
        if begun >= 0 and "PRIVATE KEY" in text[begun : begun + 60] and "-----END" not in text[begun:]:
            line = text[text.rfind("\n", 0, begun) + 1 : text.find("\n", begun) + 1]
            if line not in kept:
                kept = [line, *kept]
        return kept
