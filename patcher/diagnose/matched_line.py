"""A line of a log that holds words of patterns, what each of these words is looked for, and the signs it may be.

A `Sign` is one match of one symptom: the pattern of its own line, and those of lines that must stand near it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from patcher.diagnose.evidence import LogLine
from patcher.diagnose.log_stream import Block, line_at
from patcher.diagnose.timed_pattern import TimedPattern
from patcher.logs.labels import LabelledLine, strip_labels, time_of
from patcher.logs.lines import Stripped, strip_prefix
from patcher.logs.required_words import needles, width
from patcher.records.symptoms import Match, Symptom

LENGTH = 500
"""Characters of a line that are kept: what a terminal shows in a few lines, and an exception says at its beginning."""
YEAR = datetime.now().year
"""Of times without one, such as vLLM's `INFO 11-23 05:41:37`: only differences within one run count."""
_UNTIMED = 40
"""Lines before one without a time in which one is looked for: the depth of most tracebacks, whose header has it."""


_BEGINNING = re.compile(r"(?<![\[\\])\^")


class Sign:
    """One match of one symptom."""

    def __init__(self, symptom: Symptom, match: Match) -> None:
        self.symptom = symptom
        self.match = match
        self._line = TimedPattern(match.line)
        self._near = tuple(TimedPattern(pattern) for pattern in match.near)

    @property
    def words(self) -> frozenset[str]:
        """Of which each line that it is found in holds one, in lower case."""
        return needles(self.match.line)

    @cached_property
    def weight(self) -> int:
        """How particular it is."""
        return width(self.match.line) + 20 * len(self.match.near)

    def found(self, text: str, block: Block, start: int, steps: int) -> bool:
        """Whether the line that begins at `start` in `block`, and says `text`, is one, after so many training steps."""
        if steps < self.match.after_steps:
            return False
        if not _matches_line(self._line, text):
            return False
        if not self._near:
            return True
        within = self.match.within
        around = [*block.before(start, within), *block.behind(start, within)]
        # Most lines about a sign hold no word of its patterns, which shows in less time than one pattern takes.
        together = "\n".join(around).lower()
        if not all(any(word in together for word in words) for words in self._near_words):
            return False
        bare = [strip_prefix(line).text for line in around]
        return all(any(_matches_line(pattern, line) for line in bare) for pattern in self._near)

    @cached_property
    def _near_words(self) -> tuple[frozenset[str], ...]:
        """Of the patterns near it: the words of which a line that matches holds one; without any, the empty one."""
        return tuple(map(_words_of, self.match.near))

    @property
    def too_slow(self) -> list[str]:
        """Its patterns that have taken too long."""
        return [search.pattern for search in (self._line, *self._near) if search.is_too_slow]


def _words_of(pattern: str) -> frozenset[str]:
    try:
        return needles(pattern)
    except ValueError:
        return frozenset({""})


def _matches_line(search: TimedPattern, text: str) -> bool:
    """Whether a line matches; where a pattern wants its beginning, also without a logger's labels before it."""
    if _BEGINNING.search(search.pattern) is None:
        return search.finds(text)
    if search.finds(strip_labels(text).text):
        return True
    return not search.pattern.startswith("^(?!") and search.finds(text)


@dataclass(slots=True)
class WordRole:
    """What a word is looked for."""

    signs: list[Sign] = field(default_factory=list)
    once: bool = False
    """Only its first place counts."""
    milestone: bool = False
    begins: bool = False
    """Whether a phase may begin there, so that the time counts."""
    progress: bool = False
    step: bool = False
    """Whether it is for steps alone, once training is in its loop."""
    config: bool = False
    header: bool = False
    raised: bool = False
    ending: bool = False
    version: bool = False
    brief: bool = False
    """Whether it tells of steps or bars alone, once training is in its loop."""

    @property
    def matters(self) -> bool:
        """Whether it may tell of something wrong, or of an end."""
        return bool(self.signs) or self.header or self.raised or self.ending

    @property
    def bar(self) -> bool:
        """Whether it is the sign of any bar, and of nothing else."""
        return self.progress and not self.signs


@dataclass
class MatchedLine:
    """A line: where it begins and ends in its block, its number, the words that it holds and what they are for."""

    name: str
    block: Block
    begin: int
    end: int
    number: int
    words: tuple[tuple[str, WordRole], ...]
    timed: bool = False
    """Whether places need times, as those of several logs do."""

    @property
    def offset(self) -> int:
        return self.block.offset + self.begin - self.block.begin

    @property
    def raw(self) -> bytes:
        return self.block.content[self.begin : self.end]

    @property
    def is_brief(self) -> bool:
        """Whether it holds words of steps and bars alone."""
        for _, role in self.words:  # noqa: SIM110 - a generator takes twice the time, and most lines are such
            if not role.brief:
                return False
        return True

    @cached_property
    def stripped(self) -> Stripped:
        return line_at(self.block, self.begin, self.end)

    @cached_property
    def label(self) -> LabelledLine:
        return strip_labels(self.stripped.text)

    @cached_property
    def place(self) -> LogLine:
        line = self.stripped
        at = self.time(line.text) if self.timed else None
        return LogLine(self.name, self.number, self.offset, line.text[:LENGTH], line.actors, line.speaker, at)

    def time(self, text: str = "") -> float | None:
        """By the line itself, which says `text`, or by the last one before it that tells a time."""
        if (own := time_of(text, YEAR)) is not None:
            return own
        for line in reversed(self.block.before(self.begin, _UNTIMED)):
            if (at := time_of(strip_prefix(line[:LENGTH]).text, YEAR)) is not None:
                return at
        return None

    def before(self, most: int) -> tuple[LogLine, ...]:
        """At most `most` lines before it."""
        lines = self.block.before(self.begin, most)
        return tuple(self._near(text, at - len(lines)) for at, text in enumerate(lines))

    def around(self, before: int, behind: int) -> tuple[LogLine, ...]:
        """The lines about it, itself among them."""
        lines = self.block.behind(self.begin, behind)[1:]
        return (*self.before(before), self.place, *(self._near(text, at) for at, text in enumerate(lines, 1)))

    def _near(self, text: str, at: int) -> LogLine:
        line = strip_prefix(text.rstrip("\r").rpartition("\r")[2][:4000])
        offset = max(self.offset + at, 0)
        return LogLine(self.name, self.number + at, offset, line.text[:LENGTH], line.actors, line.speaker)

    def signs(self) -> Iterator[Sign]:
        """The signs that the line may be, each once."""
        seen: set[int] = set()
        for _, role in self.words:
            for sign in role.signs:
                if id(sign) not in seen:
                    seen.add(id(sign))
                    yield sign
