"""One pass over a log: words first, patterns on the few lines that hold one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from patcher.diagnose import endings, progressing, telling_versions
from patcher.diagnose.advancing import ACTOR, CONFIG, STEPS
from patcher.diagnose.blocks import SIZE, Block, blocks
from patcher.diagnose.cleaning import Utf8
from patcher.diagnose.closing import Waits
from patcher.diagnose.courses import Courses
from patcher.diagnose.evidence import Evidence
from patcher.diagnose.exceptions import NEEDLES as RAISED
from patcher.diagnose.heard import Heard, Role
from patcher.diagnose.hearing import Hearing
from patcher.diagnose.signs import Sign
from patcher.diagnose.tracebacks import HEADER
from patcher.diagnose.words import Words
from patcher.i18n import Phrase, phrase
from patcher.records.milestones import FIRST_SEEN
from patcher.records.symptoms import Symptom

_MARKS = ("training progress: ", "step:", "[uky] ", "total training steps: ", ACTOR)
_ENDS = (b"", b"\n", b"\r")
_OVERLAP = 256
"""Bytes before a block that begins within a line, in which a word may begin."""


class Scanner:
    """Knows all symptoms; reads any number of logs, each to an `Evidence`."""

    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)
        roles: dict[str, Role] = {}

        def role(word: str) -> Role:
            return roles.setdefault(word.lower(), Role())

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
        for word in progressing.NEEDLES:
            role(word).progress = True
        role(HEADER).header = True
        for word in RAISED:
            role(word).raised = True
        for word in endings.NEEDLES:
            role(word).ending = True
            role(word).once = False
        for word in telling_versions.NEEDLES:
            role(word).version = True
            role(word).once = False
        for one in roles.values():
            one.brief = not one.signs and (one.step or one.progress)
        self.words = tuple(roles)
        self.roles = tuple(roles.values())
        self._named = tuple(roles.items())
        self.waits = Waits(self.symptoms)
        self._signs = {id(sign): sign for one in roles.values() for sign in one.signs}.values()
        self._slow: dict[tuple[str, str], Symptom] = {}
        self._idle = [at for at, word in enumerate(roles) if word == progressing.COUNTED and not roles[word].signs]
        """Words that say nothing more once verl's own steps are told."""

    def scan(self, files: Iterable[tuple[str, BinaryIO]], size: int = SIZE, *, timed: bool = False) -> Evidence:
        """Read the parts of one log, one after another: names, and what they hold.

        Args:
            size: bytes of a block.
            timed: whether places get times, to be put in order with those of other logs.
        """
        words = Words(self.words)
        courses = Courses(self.symptoms)
        hearing = Hearing(courses, self.waits)
        offset = 0
        for name, stream in files:
            source = Utf8(stream)
            last: Block | None = None
            for block in blocks(source, offset, size):
                for heard in self._lines(name, block, words, timed=timed):
                    hearing.take(heard)
                if hearing.advance.step is not None:
                    for word in self._idle:
                        words.spend(word)
                last = block
                offset = block.offset + block.end - block.begin
            hearing.close(name, last, source.size)
            offset += 1
        found = hearing.evidence()
        spent = [
            *self.waits.spent,
            *courses.spent,
            *((sign.symptom, one) for sign in self._signs for one in sign.spent),
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

    def _lines(self, name: str, block: Block, words: Words, *, timed: bool = False) -> Iterator[Heard]:
        """The lines that hold a word, each with the words that it holds."""
        content = block.content
        counted, number = block.begin, block.number
        held: dict[int, None] = {}
        begin = end = -1

        def heard() -> Heard:
            return Heard(name, block, begin, end, number, tuple([self._named[word] for word in held]), timed)

        back = block.begin - (0 if content[block.begin - 1 : block.begin] in _ENDS else min(block.begin, _OVERLAP))
        for word, start, stop in words.find(content[back : block.end].lower()):
            if stop + back <= block.begin:
                continue
            if stop + back > end:
                if held:
                    yield heard()
                held = {}
                begin, end = block.bounds(start + back)
                if begin > counted:
                    number += content.count(b"\n", counted, begin)
                    counted = begin
            held[word] = None
            if self.roles[word].once:
                words.spend(word)
        if held:
            yield heard()
        block.lines = number - block.number + content.count(b"\n", counted, block.end)
