"""A text as its reader sees it: without colour codes, and with what is escaped or encoded in it put plainly."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Callable, Iterator

from patcher.secrets.patterns import Pattern
from patcher.secrets.values import Span, line_end

COLOURS = Pattern(
    "(?:\x1b|\\\\{1,4}(?:x1[bB]|u001[bB]|033|e)|\\^\\[|\u241b)\\[[0-9;:?]{0,40}[ -/]{0,2}[@-~]|\x9b[0-9;:?]{0,40}[@-~]|\x1b[()][A-Z0-9]"
)
"""What colours a text, also as programs write it into their own text: `\\x1b[31m`."""
_MAY_COLOUR = ("\x1b", "x1b", "x1B", "u001b", "u001B", "033[", "\\e[", "^[[", "\x9b", "\u241b")
ENCODED = Pattern(
    r"'(?:\"'\"|\\')'|\\{1,16}(?:[\"'/nrtb]|u[0-9A-Fa-f]{4}|x[2-7][0-9A-Fa-f]|\n)|(?:%[0-9A-Fa-f]{2})+|&(?:quot|apos|amp|lt|gt|equals|colon|#\d{2,3}|#x[0-9A-Fa-f]{2});"
)
_MAY_BE_ENCODED = Pattern(
    r"'\"'\"'|'\\''|\\[\"'/nrtux]|%(?:[2-7][0-9A-Fa-f]|0[9AaDd])|&(?:quot|apos|amp|lt|gt|equals|colon|#)"
)
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "equals": "=", "colon": ":"}
_LEVELS = 4
"""How often a text may have been encoded: a URL with JSON that holds JSON, in a shell's quotes."""


def without_colours(text: str) -> View:
    """The text without colour codes (ANSI sequences)."""
    return View(text, COLOURS, lambda _: "")


def coloured(text: str) -> bool:
    """Whether a text may hold colour codes."""
    return any(sign in text for sign in _MAY_COLOUR)


def decoded(text: str) -> Iterator[tuple[int, list[View]]]:
    """Stretches of lines that hold something encoded, with the views through which they are read plainly."""
    for begin, end in _stretches(text):
        views: list[View] = []
        part = text[begin:end]
        for _ in range(_LEVELS):
            view = View(part, ENCODED, _plainly)
            if view.text == part:
                break
            views.append(view)
            part = view.text
            if coloured(part):  # Colours that were encoded with the text.
                views.append(without_colours(part))
                part = views[-1].text
            yield begin, list(views)


class View:
    """A text in which what `pattern` matches is put otherwise, and the way back to the places of the first one."""

    def __init__(self, text: str, pattern: Pattern, put: Callable[[re.Match[str]], str]) -> None:
        self.text = pattern.sub(put, text)
        self.source, self._pattern, self._put = text, pattern, put
        self._here: list[int] = []
        self._there: list[int] = []

    def back(self, span: Span) -> Span:
        """The same place in the text that this is a view of."""
        if not self._here:
            self._map()
        return self._at(span[0]), max(self._at(span[1] - 1) + self._width(span[1] - 1), self._at(span[0]))

    def _map(self) -> None:
        """Pieces of one kind: where each begins here and there; a piece of length 0 there is put as it is."""
        self._kinds: list[int] = []
        here = there = 0
        for found in self._pattern.finditer(self.source):
            if found.start() > there:
                self._piece(here, there, 0)
                here += found.start() - there
            new = self._put(found)
            if new:
                self._piece(here, found.start(), found.end() - found.start())
            here += len(new)
            there = found.end()
        self._piece(here, there, 0)

    def _piece(self, here: int, there: int, width: int) -> None:
        self._here.append(here)
        self._there.append(there)
        self._kinds.append(width)

    def _at(self, place: int) -> int:
        number = max(0, bisect_right(self._here, place) - 1)
        if self._kinds[number]:
            return self._there[number]
        return self._there[number] + place - self._here[number]

    def _width(self, place: int) -> int:
        return self._kinds[max(0, bisect_right(self._here, place) - 1)] or 1


def _plainly(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == "'":  # A shell's way to put a quote into quotes.
        return "'"
    if text[0] == "%":
        from urllib.parse import unquote_to_bytes  # 2 ms with ipaddress; most texts hold nothing of a URL.

        return unquote_to_bytes(text).decode("utf-8", "replace").replace("\0", "%")
    if text[0] == "&":
        name = text[1:-1]
        if name[0] != "#":
            return _ENTITIES[name]
        return chr(int("0" + name[1:], 0) if name[1] == "x" else int(name[1:]))
    slashes = len(text) - len(text.lstrip("\\"))
    rest = text[slashes:]
    if rest[0] in "ux":
        sign = chr(int(rest[1:], 16))
    else:
        sign = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "\n": " "}.get(rest, rest)
    # One level of encoding doubles backslashes: with two before it, a sign keeps one for the next level.
    return "\\" * (slashes // 2) + sign if slashes > 1 and rest[0] in "\"'/" else sign


def _stretches(text: str) -> Iterator[Span]:
    """Lines that hold something encoded, where they follow each other as one."""
    begin = end = -1
    found = _MAY_BE_ENCODED.search(text)
    while found is not None:
        first, last = text.rfind("\n", 0, found.start()) + 1, line_end(text, found.start())
        if end < 0 or first > end + 1 or last - begin > 1 << 17:
            if end >= 0:
                yield begin, end
            begin = first
        end = last
        found = _MAY_BE_ENCODED.search(text, last)
    if end >= 0:
        yield begin, end
