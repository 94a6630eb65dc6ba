"""One pass over a log: search each block for the words of all patterns, and process the few lines that hold one.

`Scanner` knows for each word what it is looked for (`WordRole`). For each line that holds one it makes a `MatchedLine`,
which `LogAccumulator` takes. The patterns themselves are tried on those lines only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from patcher.diagnose.endings import ENDING_WORDS
from patcher.diagnose.evidence import Evidence
from patcher.diagnose.line_meaning import EXCEPTION_WORDS, INNER_WORDS
from patcher.diagnose.log_accumulator import LogAccumulator
from patcher.diagnose.log_stream import BLOCK_SIZE, Block, LogStream, Utf8Stream, blocks
from patcher.diagnose.matched_line import MatchedLine, Sign, WordRole, WordSet
from patcher.diagnose.metrics import MetricTrends
from patcher.diagnose.progress import ACTOR, CONFIG, COUNTED, ENGINES, OF_RUN, ORIGINS, PROGRESS_WORDS, STEPS
from patcher.diagnose.timed_pattern import timers
from patcher.diagnose.told_errors import TOLD_WORDS
from patcher.diagnose.tracebacks import HEADER
from patcher.diagnose.version_lines import VERSION_WORDS
from patcher.diagnose.wait_patterns import WaitPatterns
from patcher.i18n import Phrase, phrase
from patcher.logs.milestones import FIRST_SEEN, LOOPS
from patcher.records.symptoms import Symptom

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_MARKS = (
    *("training progress: ", "step:", "[uky] ", "total training steps: ", ACTOR),
    *("total optimization steps", "total steps ="),
)
_ENDS = (b"", b"\n", b"\r")
_OVERLAP = 256
"""Bytes before a block that begins within a line, in which a word may begin. No word is longer."""


_WORD_SETS = 2048
"""Sets of words that lines held, the last ones; a log of a run has some hundred."""

Found: TypeAlias = tuple[int, int, int]
"""An occurrence of a word: the index of the word, and where it begins and ends."""

# A word such as "step:" may be in every line of a log of 100 MB, and each occurrence costs a look at its line in
# Python. What matters of such a word is its first and its last lines in a block, so only those count.
KEPT_AT_EDGE = 48
"""Of a word that a block holds more often than twice this, only so many of the first and of the last occurrences count.

Set by hand: in a block of a healthy log `(WorkerDict ` occurs 6,000 times and `step:` 150 times. What shows a failure
occurs far less often.
"""
KEPT_LATER = 12
"""The same for a word that was frequent in an earlier block."""
AUTOMATON_BYTES = 40 << 20
"""Bytes after which a DFA pays off. Measured with the shipped symptoms: it takes 40 ms longer to build than the other
form, and reads a MB 1 ms faster."""
KEPT_AUTOMATA = 8
"""Automata that are kept, each for the words left over: a few times within a log, words become frequent and rare again.
"""
Automata: TypeAlias = "dict[tuple[bool, frozenset[int]], tuple[BytesAhoCorasick, list[int]]]"
"""By whether it is a DFA, and by the words that it leaves out; the one that was used last comes last."""


class WordFinder:
    """Finds words in blocks of bytes, both in lower case, in time that does not grow with how often the words occur."""

    def __init__(self, words: Sequence[str], automata: Automata | None = None) -> None:
        """`automata`: those that were made for the same words before, such as for another log of the same run."""
        self._words = [word.encode() for word in words]
        self._dropped: set[int] = set()
        self._frequent: set[int] = set()
        self._automata: Automata = automata if automata is not None else {}
        self._read = 0

    def drop(self, index: int) -> None:
        """Stop looking for a word."""
        self._dropped.add(index)
        self._frequent.discard(index)

    def find(self, lowered: bytes) -> list[Found]:
        """The occurrences, in the order of their ends; where some words are frequent, of their beginnings."""
        automaton, left = self._automaton()
        self._read += len(lowered)
        found: list[Found] = automaton.find_matches_as_indexes(lowered, overlapping=True)
        frequent = self._words_found_often(found, left)
        if len(left) < len(self._words):
            found = [(left[word], start, end) for word, start, end in found]
        if not frequent and not self._frequent:
            return found
        if frequent:
            found = [one for one in found if one[0] not in frequent]
        for word in tuple(self._frequent):
            places = self._first_and_last_places(lowered, word, KEPT_LATER)
            if len(places) < 2 * KEPT_LATER:
                self._frequent.discard(word)
            found += places
        for word in frequent:
            found += self._first_and_last_places(lowered, word, KEPT_AT_EDGE)
        self._frequent |= frequent
        found.sort(key=itemgetter(1))
        return found

    def _words_found_often(self, found: Sequence[Found], left: Sequence[int]) -> set[int]:
        if len(found) <= 2 * KEPT_AT_EDGE:
            return set()
        return {left[word] for word, count in Counter(map(itemgetter(0), found)).items() if count > 2 * KEPT_AT_EDGE}

    def _automaton(self) -> tuple[BytesAhoCorasick, list[int]]:
        key = self._read > AUTOMATON_BYTES, frozenset(self._dropped | self._frequent)
        found = self._automata.pop(key, None)
        if found is None:
            from ahocorasick_rs import BytesAhoCorasick, Implementation

            if len(self._automata) >= KEPT_AUTOMATA:
                self._automata.pop(next(iter(self._automata)))
            left = [index for index in range(len(self._words)) if index not in key[1]]
            words = [self._words[index] for index in left]
            form = Implementation.DFA if key[0] else Implementation.ContiguousNFA
            found = BytesAhoCorasick(words, implementation=form), left
        self._automata[key] = found  # The last one is the one that was used last.
        return found

    def _first_and_last_places(self, lowered: bytes, word: int, most: int) -> list[Found]:
        """The first and the last occurrences of a word, in order."""
        sign = self._words[word]
        first: list[int] = []
        at = lowered.find(sign)
        while at >= 0 and len(first) < most:
            first.append(at)
            at = lowered.find(sign, at + len(sign))
        last: list[int] = []
        end = len(lowered)
        least = first[-1] + len(sign) if first else 0
        while len(last) < most and (at := lowered.rfind(sign, least, end)) >= 0:
            last.append(at)
            end = at
        return [(word, at, at + len(sign)) for at in (*first, *reversed(last))]


class Scanner:
    """Knows all symptoms; reads any number of logs, each to an `Evidence`."""

    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)
        roles: dict[str, WordRole] = {}

        def role(word: str) -> WordRole:
            return roles.setdefault(word.lower(), WordRole())

        # The order matters: `once` is set for words of which the first occurrence is enough, and taken back below for
        # words that are also looked for as something else.
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
        for word in (*_MARKS, *LOOPS):
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
        for word in TOLD_WORDS:
            role(word).told = True
            role(word).once = False
        for word in INNER_WORDS:
            role(word).inner = True
            role(word).once = False

        def telling(words: Iterable[str]) -> Iterator[WordRole]:
            """Their roles. What only tells of which kind a log is, is looked for once, unless it is sought besides."""
            for word in words:
                fresh = word not in roles
                one = role(word)
                one.once = one.once or fresh
                yield one

        for origin, words in ORIGINS.items():
            for one in telling(words):
                one.origin = origin
        for engine, words in ENGINES.items():
            for one in telling(words):
                one.engine = engine
        for one in telling(OF_RUN):
            one.of_run = True
        for one in roles.values():
            one.brief = not one.signs and (one.step or one.progress)
        self.words = tuple(roles)
        self.roles = tuple(roles.values())
        named = tuple(roles.items())
        self._together = lru_cache(_WORD_SETS)(lambda held: WordSet(tuple([named[word] for word in held])))
        self.waits = WaitPatterns(self.symptoms)
        self._signs = {id(sign): sign for one in roles.values() for sign in one.signs}.values()
        self._automata: Automata = {}
        self._slow: dict[tuple[str, str], Symptom] = {}
        self._idle = [at for at, word in enumerate(roles) if word in COUNTED and not roles[word].signs]
        """Words that show nothing more once verl prints its own steps."""

    def scan(self, files: Iterable[tuple[str, BinaryIO]], size: int = BLOCK_SIZE, *, timed: bool = False) -> Evidence:
        """Read the parts of one log, one after another.

        Args:
            files: name and content of each part, oldest first.
            size: bytes of a block.
            timed: whether lines get times, to be put in order with those of other logs.
        """
        words = WordFinder(self.words, self._automata)
        trends = MetricTrends(self.symptoms)
        accumulator = LogAccumulator(trends, self.waits)
        offset, cut_off = 0, list[str]()
        for name, stream in files:
            source = Utf8Stream(stream)
            last: Block | None = None
            for block in blocks(source, offset, size):
                with timers():
                    for line in self._lines(name, block, words, timed=timed):
                        accumulator.take(line)
                if accumulator.run.step is not None:
                    for word in self._idle:
                        words.drop(word)
                last = block
                offset = block.offset + block.end - block.begin
            accumulator.close(name, last, source.size)
            offset += 1
            if isinstance(stream, LogStream) and stream.cut_off:
                cut_off.append(name)
        found = accumulator.evidence()
        found.cut_off = tuple(cut_off)
        spent = [
            *self.waits.too_slow,
            *trends.too_slow,
            *((sign.symptom, one) for sign in self._signs for one in sign.too_slow),
        ]
        self._slow |= {(symptom.id, pattern): symptom for symptom, pattern in spent}
        return found

    @property
    def notes(self) -> tuple[Phrase, ...]:
        """Patterns that took too long on the logs so far, and were left out."""
        template = "{file}: a pattern of {id} takes too long on this log and was left out: {pattern}"
        return tuple(
            phrase(template, file=symptom.path, id=name, pattern=pattern)
            for (name, pattern), symptom in self._slow.items()
        )

    def _lines(self, name: str, block: Block, words: WordFinder, *, timed: bool = False) -> Iterator[MatchedLine]:
        """The lines that hold a word, each with the words that it holds."""
        content = block.content
        counted, number = block.begin, block.number
        held: dict[int, None] = {}
        begin = end = -1

        def matched() -> MatchedLine:
            return MatchedLine(name, block, begin, end, number, self._together(tuple(held)), timed)

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
