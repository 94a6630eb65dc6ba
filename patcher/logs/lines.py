"""Cut a log into lines, at newlines and carriage returns, as its bytes arrive in pieces, in bounded memory.

`strip_prefix` takes colours and the names of Ray's processes off a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

LIMIT = 1 << 14
"""Bytes of a line that are read at once. What is beyond comes as a further piece of the same line."""
_NEAR = 1 << 11
"""Bytes before the limit in which a space is searched to cut at, so that no word is cut in two."""

_ANSI = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f](?:(?<=\x1b)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_]))?"
)
_LOST = re.compile(r"\[\d{1,2}(?:;\d{1,3})*m")
"""A colour that has lost its first character, the escape, as pasted text has it: `[36m(Worker pid=81)[0m text`."""
_HEAD, _CODE = 200, 12
"""Characters that hold the colours of a prefix, and the length of one colour code. Most lines have no colours behind
them."""
_PREFIX = re.compile(
    r"\((?:(?:(?P<actor>[\w.:=-]+(?:\([\w=]+\))?(?: [\w.:=-]+)*?)(?: |, (?:rank=\d+, )?))?pid=(?:\d+|gcs_server)"
    r"|raylet|autoscaler(?: \+\w+)?)(?:, ip=[^\s,)]+)?\) ?"
)
"""Ray's `(WorkerDict pid=81, ip=10.0.0.2)`, and `(head, rank=0, pid=81)` of SkyPilot, which may stand before Ray's."""
_AHEAD = re.compile(
    r"[\w.-]+\s+\| (?=\()|(?:[\w.-]+\s+\| )?"
    r"[\[【]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\]】]?(?: std(?:err|out) F)? *(?=\()"
)
"""What collectors of containers' output put before a prefix, the time, `2026-01-11T10:00:00.123Z (Worker pid=81)`, or
the container, `engine-1  | (Worker pid=81)`."""
_NOTEBOOK = re.compile(r"\d+\.\ds\t\d+\t")
"""The seconds and the number that Kaggle puts before each line of a notebook's log."""
_BOLD = re.compile(r"(?P<before>(?:> ?)*(?:\[rank\d+\]: *)?)\*\*(?P<text>[A-Za-z_][\w.]*(?:Error|Exception)\b.*?)\*\*$")
_QUOTED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception): ")
_FRAME = re.compile(r'\s*File "')
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\](?: \(Ray deduplicates logs by default\..*)?$")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, or one state of a progress bar.

    `text` includes its line end. `number` counts newlines from 1, as an editor does. `end` is the offset behind the
    line.
    """

    text: str
    number: int
    end: int


class Lines:
    """Takes the bytes of a log in pieces; the first piece begins at the byte `offset`, with the line `number`."""

    def __init__(self, offset: int = 0, number: int = 1) -> None:
        self._end = offset
        self._number = number
        self._open = bytearray()

    def feed(self, piece: bytes) -> Iterator[Line]:
        """The lines that this piece completes."""
        self._open += piece
        at = 0
        while (cut := self._cut(at)) > at:
            yield self._line(bytes(self._open[at:cut]))
            at = cut
        del self._open[:at]

    def rest(self) -> Iterator[Line]:
        """The last line, which has no line end yet: for the end of the log, or where it stops growing."""
        if self._open:
            yield self._line(bytes(self._open))
            self._open.clear()

    def _cut(self, at: int) -> int:
        """Where the line that begins at `at` ends; `at` itself if its end has not arrived."""
        newline = self._open.find(b"\n", at, at + LIMIT)
        bar = self._open.find(b"\r", at, newline if newline >= 0 else at + LIMIT)
        if bar >= 0 and bar + 1 == len(self._open):
            return at
        if bar >= 0 and bar + 1 != newline:
            return bar + 1
        if newline >= 0:
            return newline + 1
        if len(self._open) - at < LIMIT:
            return at
        space = self._open.rfind(b" ", at + LIMIT - _NEAR, at + LIMIT) + 1
        cut = space or at + LIMIT
        while not space and cut > at + LIMIT - 4 and cut < len(self._open) and self._open[cut] & 0xC0 == 0x80:
            cut -= 1
        return cut

    def _line(self, content: bytes) -> Line:
        self._end += len(content)
        number = self._number
        self._number += content.endswith(b"\n")
        return Line(content.decode("utf-8", "replace"), number, self._end)


@dataclass(frozen=True, slots=True)
class Stripped:
    """A line without colours, and without the prefixes of Ray's processes."""

    text: str
    actors: tuple[str, ...]
    """The process that wrote it, outermost first: TaskRunner, WorkerDict, vLLMHttpServer, EngineCore, …"""
    speaker: str = ""
    """The prefixes as printed, which tell one process from another; "" where there are none."""


def strip_prefix(text: str) -> Stripped:
    """Split a line into prefixes and text. Ray's count of repetitions, `[repeated 8x across cluster]`, is removed."""
    at = text.rfind("\x1b", 0, _HEAD) + 1
    if at:
        at += _CODE
        text = _ANSI.sub("", text[:at]) + text[at:]
    if "s\t" in text[:12] and (found := _NOTEBOOK.match(text)):
        text = text[found.end() :]
    if not text.isprintable():
        text = _ANSI.sub("", text)
    if "[0m" in text or "[0;0m" in text:
        text = _LOST.sub("", text)
    actors = []
    text = whole = text.rstrip()
    if '{"' in text[:_HEAD]:
        text = whole = _unwrapped(text)
    time = ""
    ahead = _AHEAD.match(text) if "pid=" in text[:_HEAD] and not text.startswith("(") else None
    if ahead is not None and _PREFIX.match(text, ahead.end()):
        time = ahead[0] if ahead[0][-2:] != "| " else ""
        text = whole = text[ahead.end() :]
    while text.startswith("(") and (found := _PREFIX.match(text)):
        if found["actor"]:
            actors.append(found["actor"])
        text = text[found.end() :]
    speaker = whole[: len(whole) - len(text)].rstrip()
    text = time + text
    if text[1:6] == "[rank":  # Pasting has put a blank or a tab before it.
        text = text.lstrip()
    if "[repeated " in text:
        text = _REPEATED.sub("", text)
    if "**" in text or text.endswith("`"):
        text = _without_markup(text)
    return Stripped(text, tuple(actors), speaker)


_WRAPPED = re.compile(
    r"(?:[\w.-]+\s+\| )?\{(?:\"(?:timestamp|time|ts|level|severity|levelname|stream|logger|name|service\w*)\": ?"
    r"(?:\"[^\"]*\"|[\d.]+), ?)*\"(?:event|message|msg|log)\": ?\"(?P<text>(?:[^\"\\]|\\.)*)"
)
"""A line that a logger has put into JSON: `{"event": "KeyError: 'rows'", "timestamp": "2026-01-11T10:00:00Z"}`."""


def _unwrapped(text: str) -> str:
    """The text that a line of JSON holds; other lines as they are."""
    found = _WRAPPED.match(text)
    if found is None:
        return text
    try:
        held = str(json.loads(f'"{found["text"]}"'))
    except ValueError:
        return found["text"]
    # An escape may hold half a character (`\\ud83d`), the end of a line, or a colour.
    whole = held.encode("utf-8", "replace").decode()
    return _ANSI.sub("", whole).rstrip().replace("\n", " ")


def _without_markup(text: str) -> str:
    """A line of a traceback without the marks of a web page: `**TypeError: no such key**`, and the one behind the last
    line of a quotation, `ValueError: no rows are left` and a backtick."""
    if _FRAME.match(text):
        return text.replace("**", "")
    if (found := _BOLD.match(text)) is not None:
        return found["before"] + found["text"]
    return text[:-1] if text.endswith("`") and text.count("`") % 2 and _QUOTED.match(text) else text
