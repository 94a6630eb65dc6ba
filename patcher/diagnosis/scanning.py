"""One pass over a log: needles first, patterns on the few lines that hold one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import ahocorasick_rs

from patcher.diagnosis.blocks import Block, blocks
from patcher.diagnosis.evidence import Evidence, Hit, Place, Raised
from patcher.diagnosis.lines import Line, said
from patcher.diagnosis.milestones import FIRST_SEEN, PHASES, Milestones
from patcher.diagnosis.needles import needles
from patcher.records.symptoms import Match, Symptom

_MARKS = tuple(dict.fromkeys(text.lower() for text in (*FIRST_SEEN, "Training Progress: ", "step:", "[uky] ")))
_TRACEBACK = "traceback (most recent call last)"
_RAISED = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Warning|OOM))"
    r"(?P<of>\([\w.]+\))?(?::|$)"
)
_WRAPPERS = ("RayTaskError", "ChildFailedError", "CalledProcessError", "RayActorError", "ActorDiedError")
_VERSIONS = (
    ("vllm", re.compile(r"LLM engine \(v(?P<version>[\w.+]+)\)|vLLM API server version (?P<other>[\w.+]+)")),
    ("torch", re.compile(r"PyTorch version *: (?P<version>[\w.+]+)")),
)
LAST = 40
"""How many of the last lines are kept."""
MOST = 200
"""How many exceptions are kept, the first half and the last."""


@dataclass(frozen=True, slots=True)
class _Sign:
    symptom: Symptom
    match: Match
    line: re.Pattern[str]
    near: tuple[re.Pattern[str], ...]


class Scanner:
    """Knows all symptoms; reads any number of logs, each to an `Evidence`."""

    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)
        words: dict[str, list[_Sign | None]] = {}
        for symptom in self.symptoms:
            for match in symptom.matches:
                sign = _Sign(symptom, match, _compiled(match.line), tuple(map(_compiled, match.near)))
                for word in needles(match.line):
                    words.setdefault(word, []).append(sign)
        for word in (*_MARKS, _TRACEBACK):
            words.setdefault(word, []).append(None)
        self._words = list(words)
        self._signs = [tuple(sign for sign in words[word] if sign is not None) for word in self._words]
        self._automaton = ahocorasick_rs.BytesAhoCorasick([word.encode() for word in self._words])

    def scan(self, files: Sequence[tuple[str, BinaryIO]]) -> Evidence:
        """Read the files of one run, one after another: names, and what they hold."""
        evidence = Evidence()
        milestones = Milestones()
        offset = 0
        for name, stream in files:
            for block in blocks(stream, offset):
                self._block(name, block, evidence, milestones)
                offset = block.offset + block.end - block.begin
                evidence.lines += block.content.count(b"\n", block.begin, block.end)
        evidence.size = offset
        evidence.phase, evidence.spans = milestones.phase, milestones.spans()
        evidence.step, evidence.steps = milestones.step, milestones.steps
        return evidence

    def _block(self, name: str, block: Block, evidence: Evidence, milestones: Milestones) -> None:
        for start, end, number, words in self._lines(block):
            text = block.content[start:end].decode("utf-8", "replace")
            told = said(text)
            place = Place(name, number, block.offset + start - block.begin, told.text[:500], told.actors)
            before = milestones.step
            milestones.feed(Line(text, number, place.offset + end - start), milestones.at)
            if milestones.step != before:
                evidence.progress = place.offset
                if milestones.step == milestones.steps:
                    evidence.finished = place
            for word in words:
                for sign in self._signs[word]:
                    if sign.line.search(told.text) and self._near(sign, block, start):
                        self._hit(sign, place, evidence, milestones)
                if self._words[word] == _TRACEBACK and len(evidence.raised) < MOST:
                    evidence.raised.extend(_traceback(name, block, start, number))
        evidence.last = tuple(_tail(name, block)) or evidence.last

    def _lines(self, block: Block) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
        """Lines that hold a needle: begin and end in the block, number, the needles."""
        content = block.content
        lowered = content[block.begin : block.end].lower()
        counted, number = block.begin, block.number
        words: list[int] = []
        line = (-1, -1)
        for word, start, _ in self._automaton.find_matches_as_indexes(lowered, overlapping=True):
            at = start + block.begin
            if at >= line[1]:
                if words:
                    yield (*line, number, tuple(dict.fromkeys(words)))
                words = []
                begin = max(content.rfind(b"\n", 0, at), content.rfind(b"\r", 0, at)) + 1
                ends = [found for mark in (b"\n", b"\r") if (found := content.find(mark, at)) >= 0]
                line = (begin, min(ends, default=len(content)))
                number += content.count(b"\n", counted, begin)
                counted = begin
            words.append(word)
        if words:
            yield (*line, number, tuple(dict.fromkeys(words)))

    def _near(self, sign: _Sign, block: Block, start: int) -> bool:
        if not sign.near:
            return True
        around = _around(block, start, sign.match.within)
        return all(any(pattern.search(text) for text in around) for pattern in sign.near)

    def _hit(self, sign: _Sign, place: Place, evidence: Evidence, milestones: Milestones) -> None:
        if sign.match.after_steps and (milestones.step or 0) < sign.match.after_steps:
            return
        for hit in evidence.hits:
            if hit.symptom is sign.symptom:
                hit.last, hit.count = place, hit.count + 1
                return
        evidence.hits.append(Hit(sign.symptom, place, place, 1, milestones.step or 0))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _around(block: Block, start: int, within: int) -> list[str]:
    before = block.content[:start].split(b"\n")[-within - 1 :]
    behind = block.content[start:].split(b"\n", within + 1)[: within + 1]
    return [said(line.decode("utf-8", "replace")).text for line in (*before, *behind)]


def _traceback(name: str, block: Block, start: int, number: int) -> list[Raised]:
    """The exception that ends the traceback whose first line begins at `start`."""
    frames: list[str] = []
    offset = block.offset + start - block.begin
    actors = said(block.content[start : start + 500].decode("utf-8", "replace")).actors
    for count, raw in enumerate(block.content[start:].split(b"\n", 400)[:400]):
        told = said(raw.decode("utf-8", "replace"))
        if count and told.actors == actors:
            if frame := re.match(r'\s*File "(?P<path>[^"]+)", line \d+, in (?P<function>.+)', told.text):
                frames.append(f"{frame['path']}:{frame['function']}")
            elif found := _RAISED.match(told.text):
                wrapper = bool(found["of"]) or found["name"].endswith(_WRAPPERS)
                place = Place(name, number + count, offset, told.text[:500], told.actors)
                return [Raised(found["name"], place, wrapper, False, tuple(frames[-8:]))]
        offset += len(raw) + 1
    return []


def _tail(name: str, block: Block) -> Iterator[Place]:
    """The last lines of a block that say something."""
    lines = block.content[block.begin : block.end].split(b"\n")
    number = block.number + len(lines) - 1
    found = []
    for raw in reversed(lines):
        told = said(raw.rpartition(b"\r")[2].decode("utf-8", "replace"))
        if told.text.strip():
            found.append(Place(name, number, 0, told.text[:500], told.actors))
            if len(found) == LAST:
                break
        number -= 1
    return reversed(found)


__all__ = ["PHASES", "Scanner"]
