"""One pass over a log: search each block for the words of all patterns, and hand on the few lines that hold one.

`Scanner` knows for each word what it is looked for (`WordRole`). For each line that holds one it makes a `MatchedLine`,
which `LogAccumulator` takes. The patterns themselves are tried on those lines alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from patcher.diagnose.blocks import SIZE, Block, WordFinder, blocks
from patcher.diagnose.evidence import Evidence
from patcher.diagnose.last_lines import WaitPatterns
from patcher.diagnose.line_meaning import ENDING_WORDS, EXCEPTION_WORDS, VERSION_WORDS
from patcher.diagnose.log_accumulator import LogAccumulator
from patcher.diagnose.log_stream import Utf8Stream
from patcher.diagnose.matched_line import MatchedLine, WordRole
from patcher.diagnose.metrics import MetricTrends
from patcher.diagnose.progress import ACTOR, CONFIG, COUNTED, PROGRESS_WORDS, STEPS
from patcher.diagnose.symptom_patterns import Sign
from patcher.diagnose.tracebacks import HEADER
from patcher.i18n import Phrase, phrase
from patcher.logs.milestones import FIRST_SEEN
from patcher.records.symptoms import Symptom

_MARKS = ("training progress: ", "step:", "[uky] ", "total training steps: ", ACTOR)
_ENDS = (b"", b"\n", b"\r")
_OVERLAP = 256
"""Bytes before a block that begins within a line, in which a word may begin."""


class Scanner:
    """Knows all symptoms; reads any number of logs, each to an `Evidence`."""

    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)
        roles: dict[str, WordRole] = {}

        def role(word: str) -> WordRole:
            return roles.setdefault(word.lower(), WordRole())

        for symptom in self.symptoms:
            for match in symptom.matches:
                sign = Sign(symptom, match)
                for word in sign.words:
                    role(word).signs.append(sign)
        for word in FIRST_SEEN:
            role(word).milestone = role(word).begins = True
        for word in (*FIRST_SEEN, *CONFIG):
            role(word).once = not role(word).signs
        for word in CONFIG:
            role(word).config = role(word).begins = True
        for word in _MARKS:
            role(word).milestone = True
            role(word).once = False
        for word in STEPS:
            role(word).step = not role(word).signs
        for word in PROGRESS_WORDS:
            role(word).progress = True
        role(HEADER).header = True
        for word in EXCEPTION_WORDS:
            role(word).raised = True
        for word in ENDING_WORDS:
            role(word).ending = True
            role(word).once = False
        for word in VERSION_WORDS:
            role(word).version = True
            role(word).once = False
        for one in roles.values():
            one.brief = not one.signs and (one.step or one.progress)
        self.words = tuple(roles)
        self.roles = tuple(roles.values())
        self._named = tuple(roles.items())
        self.waits = WaitPatterns(self.symptoms)
        self._signs = {id(sign): sign for one in roles.values() for sign in one.signs}.values()
        self._slow: dict[tuple[str, str], Symptom] = {}
        self._idle = [at for at, word in enumerate(roles) if word == COUNTED and not roles[word].signs]
        """Words that say nothing more once verl's own steps are told."""

    def scan(self, files: Iterable[tuple[str, BinaryIO]], size: int = SIZE, *, timed: bool = False) -> Evidence:
        """Read the parts of one log, one after another: names, and what they hold.

        Args:
            size: bytes of a block.
            timed: whether places get times, to be put in order with those of other logs.
        """
        words = WordFinder(self.words)
        courses = MetricTrends(self.symptoms)
        accumulator = LogAccumulator(courses, self.waits)
        offset = 0
        for name, stream in files:
            source = Utf8Stream(stream)
            last: Block | None = None
            for block in blocks(source, offset, size):
                for line in self._lines(name, block, words, timed=timed):
                    accumulator.take(line)
                if accumulator.run.step is not None:
                    for word in self._idle:
                        words.drop(word)
                last = block
                offset = block.offset + block.end - block.begin
            accumulator.close(name, last, source.size)
            offset += 1
        found = accumulator.evidence()
        spent = [
            *self.waits.too_slow,
            *courses.too_slow,
            *((sign.symptom, one) for sign in self._signs for one in sign.too_slow),
        ]
        self._slow |= {(symptom.id, pattern): symptom for symptom, pattern in spent}
        return found

    @property
    def notes(self) -> tuple[Phrase, ...]:
        """What was left out of the logs that were scanned: patterns that took too long."""
        told = "{file}: a pattern of {id} takes too long on this log and was left out: {pattern}"
        return tuple(
            phrase(told, file=symptom.path, id=name, pattern=pattern) for (name, pattern), symptom in self._slow.items()
        )

    def _lines(self, name: str, block: Block, words: WordFinder, *, timed: bool = False) -> Iterator[MatchedLine]:
        """The lines that hold a word, each with the words that it holds."""
        content = block.content
        counted, number = block.begin, block.number
        held: dict[int, None] = {}
        begin = end = -1

        def matched() -> MatchedLine:
            return MatchedLine(name, block, begin, end, number, tuple([self._named[word] for word in held]), timed)

        back = block.begin - (0 if content[block.begin - 1 : block.begin] in _ENDS else min(block.begin, _OVERLAP))
        for word, start, stop in words.find(content[back : block.end].lower()):
            if stop + back <= block.begin:
                continue
            if stop + back > end:
                if held:
                    yield matched()
                held = {}
                begin, end = block.bounds(start + back)
                if begin > counted:
                    number += content.count(b"\n", counted, begin)
                    counted = begin
            held[word] = None
            if self.roles[word].once:
                words.drop(word)
        if held:
            yield matched()
        block.lines = number - block.number + content.count(b"\n", counted, block.end)
