"""A line of a log that holds words of patterns, what each word is looked for, and the symptoms that the line may
match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache, partial

from patcher.diagnose.evidence import LINE_LENGTH, LogLine
from patcher.diagnose.log_stream import Block, line_at
from patcher.diagnose.timed_pattern import TimedPattern
from patcher.logs.labels import LabelledLine, strip_labels, time_of
from patcher.logs.lines import Stripped, strip_prefix
from patcher.logs.required_words import required_words, width
from patcher.records.symptoms import Match, Symptom

YEAR = datetime.now().year
"""The year of times without one, such as vLLM's `INFO 11-23 05:41:37`. Only differences within a run count."""
_UNTIMED = 40
"""Lines before a line without a time in which a time is searched: most tracebacks are no deeper, and their header has
one."""


class Sign:
    """One `[[match]]` of one symptom: the pattern of its line, and those of lines that must be near it."""

    def __init__(self, symptom: Symptom, match: Match) -> None:
        self.symptom = symptom
        self.match = match
        self._line = TimedPattern(match.line)
        self._near = tuple(TimedPattern(pattern) for pattern in match.near)

    @property
    def words(self) -> frozenset[str]:
        """Words in lower case, of which each line that the pattern matches holds at least one."""
        return required_words(self.match.line)

    @cached_property
    def weight(self) -> int:
        """How specific the match is: characters that a match needs at least, and 20 for each pattern near it. The
        number is set by hand; only the order counts."""
        return width(self.match.line) + 20 * len(self.match.near)

    def found(self, line: MatchedLine, steps: int) -> bool:
        """Whether the line matches, with what must be near it; `steps` are the training steps so far."""
        if steps < self.match.after_steps:
            return False
        if not _matches_line(self._line, line.stripped.text):
            return False
        if not self._near:
            return True
        around, together = line.surroundings(self.match.within)
        # Most lines near a match hold no word of the other patterns. That test takes less time than one pattern.
        if not all(any(word in together for word in words) for words in self._near_words):
            return False
        return all(map(partial(_is_near, around), self._near, self._near_words))

    @cached_property
    def _near_words(self) -> tuple[frozenset[str], ...]:
        """For each pattern near the line: words of which each match holds one. A pattern without any has the empty
        word."""
        return tuple(map(words_of, self.match.near))

    @property
    def too_slow(self) -> list[str]:
        """Those of its patterns that took too long."""
        return [search.pattern for search in (self._line, *self._near) if search.is_too_slow]


_stripped = lru_cache(maxsize=128)(strip_prefix)
"""Of lines near others: where failure follows failure, the same forty are looked at again for each."""


def words_of(pattern: str) -> frozenset[str]:
    """Words in lower case, of which each text that the pattern matches holds at least one; the empty word where
    it needs none."""
    try:
        return required_words(pattern)
    except ValueError:
        return frozenset({""})


def _is_near(around: Sequence[str], pattern: TimedPattern, words: frozenset[str]) -> bool:
    """Whether one of the lines matches a pattern, of which a line holds one of these words at least."""
    for one in around:
        lowered = one.lower()
        if any(word in lowered for word in words) and _matches_line(pattern, _stripped(one).text):
            return True
    return False


def _matches_line(search: TimedPattern, text: str) -> bool:
    """Whether a pattern matches a line. One that is anchored at the beginning (`^`) is also tried behind a logger's
    labels."""
    if not search.is_anchored:
        return search.finds(text)
    if search.finds(strip_labels(text).text):
        return True
    return not search.pattern.startswith("^(?!") and search.finds(text)


@dataclass(slots=True)
class WordRole:
    """What a word is looked for."""

    signs: list[Sign] = field(default_factory=list)
    once: bool = False
    """Whether only its first occurrence counts."""
    milestone: bool = False
    begins: bool = False
    """Whether a phase may begin there, so that the time of the line is needed."""
    progress: bool = False
    step: bool = False
    """Whether it is for steps only, once training is in its loop."""
    config: bool = False
    header: bool = False
    raised: bool = False
    ending: bool = False
    told: bool = False
    version: bool = False
    inner: bool = False
    origin: str = ""
    """Whose trainer it shows: `verl` or `other`."""
    engine: str = ""
    """Which inference engine it shows."""
    of_run: bool = False
    """Whether it shows a log to be of a run, in no certain phase."""
    brief: bool = False
    """Whether it shows only steps or progress bars, once training is in its loop."""

    @property
    def matters(self) -> bool:
        """Whether it may show an error or an end."""
        return bool(self.signs) or self.header or self.raised or self.ending or self.told

    @property
    def bar(self) -> bool:
        """Whether it shows a progress bar, and nothing else."""
        return self.progress and not self.signs


class WordSet:
    """Words that one line holds, and what they are looked for together. Many lines hold the same, so it is made once
    for all of them."""

    def __init__(self, words: tuple[tuple[str, WordRole], ...]) -> None:
        roles = [role for _, role in words]
        self.signs = tuple({id(sign): sign for role in roles for sign in role.signs}.values())
        """The symptoms' matches that the line may be, each once."""
        self.is_brief = all(role.brief for role in roles)
        self.matters = any(role.matters for role in roles)
        self.milestone = any(role.milestone or role.config for role in roles)
        self.begins = any(role.begins for role in roles)
        self.config = any(role.config for role in roles)
        self.progress = any(role.progress for role in roles)
        self.bar = any(role.bar for role in roles)
        self.header = any(role.header for role in roles)
        self.raised = any(role.raised for role in roles)
        self.told = any(role.told for role in roles)
        self.inner = any(role.inner for role in roles)
        self.of_run = any(role.of_run for role in roles)
        self.origins = frozenset(role.origin for role in roles if role.origin)
        self.engines = frozenset(role.engine for role in roles if role.engine)
        self.ends_or_versions = tuple((word, role) for word, role in words if role.ending or role.version)


@dataclass
class MatchedLine:
    """A line with the words that it holds, and what they are looked for. `begin` and `end` are its bounds in the
    block."""

    name: str
    block: Block
    begin: int
    end: int
    number: int
    held: WordSet
    timed: bool = False
    """Whether lines need times, to be put in order with those of other logs."""

    @property
    def offset(self) -> int:
        return self.block.offset + self.begin - self.block.begin

    @property
    def raw(self) -> bytes:
        return self.block.content[self.begin : self.end]

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
        return LogLine.of(self.name, self.number, self.offset, line, at)

    def time(self, text: str = "") -> float | None:
        """The time of the line, which says `text`, or of the last line before it that has one; None where none has."""
        if (own := time_of(text, YEAR)) is not None:
            return own
        for line in reversed(self.block.before(self.begin, _UNTIMED)):
            if (at := time_of(strip_prefix(line[:LINE_LENGTH]).text, YEAR)) is not None:
                return at
        return None

    def before(self, most: int, speaker: str = "") -> tuple[LogLine, ...]:
        """Those of at most `most` lines before it that `speaker` may have written, in order; "": all."""
        lines = self.block.before(self.begin, most)
        # A line with colours may have them within the speaker's name.
        return tuple(
            self._near(text, at - len(lines))
            for at, text in enumerate(lines)
            if not speaker or speaker in text or "\x1b" in text
        )

    def around(self, before: int, behind: int) -> tuple[LogLine, ...]:
        """The line with at most so many lines before it and after it."""
        lines = self.block.behind(self.begin, behind)[1:]
        return (*self.before(before), self.place, *(self._near(text, at) for at, text in enumerate(lines, 1)))

    def _near(self, text: str, at: int) -> LogLine:
        line = _stripped(text.rstrip("\r").rpartition("\r")[2][:4000])
        return LogLine.of(self.name, self.number + at, max(self.offset + at, 0), line)

    @cached_property
    def _surroundings(self) -> dict[int, tuple[list[str], str]]:
        return {}

    def surroundings(self, within: int) -> tuple[list[str], str]:
        """The line and so many before and after it, and all of them together in lower case. Kept for the next match."""
        if within not in self._surroundings:
            lines = [*self.block.before(self.begin, within), *self.block.behind(self.begin, within)]
            self._surroundings[within] = lines, "\n".join(lines).lower()
        return self._surroundings[within]
