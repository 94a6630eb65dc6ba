"""What the lines of one run come to, heard in order: phases, steps, symptoms, exceptions, ends, versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from patcher.diagnosis.blocks import Block
from patcher.diagnosis.closing import LAST, Waits, complaints, last_words
from patcher.diagnosis.courses import Courses
from patcher.diagnosis.endings import ending
from patcher.diagnosis.evidence import Evidence, Hit, Place, Raised
from patcher.diagnosis.exceptions import ALONE, nature
from patcher.diagnosis.labels import Labelled, unlabelled
from patcher.diagnosis.lines import Line, Said, said
from patcher.diagnosis.milestones import Milestones, Phase
from patcher.diagnosis.progressing import Progress
from patcher.diagnosis.raising import Exceptions
from patcher.diagnosis.signs import Sign
from patcher.diagnosis.telling_versions import told
from patcher.diagnosis.times import time_of
from patcher.diagnosis.tracebacks import walk
from patcher.records.symptoms import Symptom

CONFIG = (
    *("actor_rollout_ref", "ray init kwargs", "[validate_config]", "taskrunner hostname", "verl.trainer."),
    "error executing job with overrides",
)
"""Words by which a log is known to be of a training by verl, in its first phase."""
STEPS = ("training progress: ", "step:")
_STEP = re.compile(
    rb"(?:^|[\s)\]m])step:(?P<step>\d+) - |Training Progress: +\d+%\|[^|]*\| (?P<done>\d+)/(?P<all>\d+) \["
)
_BEFORE, _BEHIND = 3, 4
"""Lines about a sign that are kept."""
_YEAR = datetime.now().year
_HEAD = 400
"""Characters of a line in which a phase or a step is told."""
_UNTIMED = 40
"""Lines before one without a time in which one is looked for."""
_LENGTH = 500


@dataclass(slots=True)
class Role:
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

    @property
    def bar(self) -> bool:
        """Whether it is the sign of any bar, and of nothing else."""
        return self.progress and not self.signs

    @property
    def bare(self) -> bool:
        """Whether it is for symptoms and exceptions alone."""
        return not (self.milestone or self.progress or self.config or self.header or self.ending or self.version)


@dataclass(frozen=True, slots=True)
class Heard:
    """A line that holds words: where it begins and ends in its block, its number, the words and what they are for."""

    name: str
    block: Block
    begin: int
    end: int
    number: int
    words: tuple[tuple[str, Role], ...]

    @property
    def offset(self) -> int:
        return self.block.offset + self.begin - self.block.begin


class Hearing:
    """Takes the lines that hold words, in order, and sums them up."""

    def __init__(self, courses: Courses, waits: Waits, *, timed: bool = False) -> None:
        self._courses = courses
        self._timed = timed
        """Whether places need times, as those of several logs do."""
        self._waits = waits
        self._milestones = Milestones()
        self._progress = Progress()
        self._exceptions = Exceptions()
        self._found = Evidence()
        self._hits: dict[str, Hit] = {}
        self._begun: dict[Phase, Place] = {}
        self._versions: dict[str, str] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._known = False
        """Whether the log is known to be of a training, or of an engine that one uses."""
        self._closed: Place | None = None
        self._headers: set[int] = set()
        self._endings: set[int] = set()
        self._zero: float | None = None

    @property
    def stepping(self) -> bool:
        """Whether training steps have been told as verl does."""
        return self._milestones.step is not None

    def take(self, heard: Heard) -> None:
        """Hear one line."""
        if "loop" in self._begun and all(role.step or role.bar for _, role in heard.words):
            self._step(heard)
            return
        line = _bare(heard)
        if not line.text:
            return
        place = self._place(heard, line)
        label: Labelled | None = None
        signs: list[Sign] = []
        for word, role in heard.words:
            signs += role.signs
            if role.bare:
                continue
            label = label or unlabelled(line.text)
            if role.milestone or role.progress or role.config:
                self._advance(place, line, label, role)
            if role.header and heard.offset not in self._headers:
                self._follow(heard)
            if role.ending:
                self._ended(label, place, word, heard)
            if role.version:
                self._version(label, word, heard)
        for sign in signs if len(signs) < 2 else {id(sign): sign for sign in signs}.values():
            if sign.found(line.text, heard.block, heard.begin, self._milestones.step or 0):
                self._hit(sign, place, heard)
        if heard.offset not in self._endings and any(role.raised for _, role in heard.words):
            self._raised(label or unlabelled(line.text), place, heard)

    def close(self, name: str, last: Block | None, size: int) -> None:
        """A file has come to its end."""
        found = self._found
        found.size += size
        if last is not None:
            lines = last.number + last.lines - (last.content[last.end - 1 : last.end] == b"\n")
            found.lines += lines
            self._ends[name] = lines, last.offset + last.end - last.begin
            found.last = (*found.last, *last_words(last, name))[-LAST:]
            for place in reversed(found.last):
                if self._zero is not None and time_of(place.text, _YEAR) is not None:
                    self._milestones.at = max(self._milestones.at, self._now(place.text))
                    break

    def evidence(self) -> Evidence:
        """All of it."""
        found, milestones = self._found, self._milestones
        found.hits = list(self._hits.values())
        found.raised = self._exceptions.all()
        found.trends = self._courses.holding()
        found.step, found.steps = milestones.step, milestones.steps
        found.spans = {name: span for name, span in milestones.spans().items() if name in self._begun}
        found.begun = self._begun
        found.phase = milestones.phase if len(milestones.begun) > 1 or self._known else None
        found.versions, found.ends = self._versions, self._ends
        found.complained = complaints(found.last)
        if self._closed is not None and self._closed.offset >= (found.last[0].offset if found.last else 0):
            found.closed = self._closed
        if found.finished is None:
            found.wait = self._waits.found(found.last)
        return found

    def _advance(self, place: Place, line: Said, label: Labelled, role: Role) -> None:
        """A line that may be the sign of a phase, a step or a bar."""
        self._known = self._known or role.config
        milestones = self._milestones
        before = milestones.step
        if role.milestone or role.config:
            now = self._now(line.text) if role.begins else milestones.at
            for milestone in milestones.feed(Line(line.speaker + label.text[:_HEAD], place.number, 0), now):
                self._begun.setdefault(milestone.phase, place)
            if self._courses and label.text.startswith("step:"):
                self._courses.feed(label.text.encode(), lambda: place, milestones.step or 0)
        if milestones.step != before or (role.progress and self._progress.moved(label.text, milestones)):
            self._moved(place)
            if milestones.step != before:
                self._found.complete = place if milestones.step == milestones.steps else None

    def _step(self, heard: Heard) -> None:
        """A line of a log that is known to be in the loop, and holds words of steps alone: most lines are such."""
        raw = heard.block.content[heard.begin : heard.end]
        found = _STEP.search(raw, 0, _HEAD)
        milestones = self._milestones
        if found is None:
            if any(role.bar for _, role in heard.words) and self._progress.moved(_bare(heard).text, milestones):
                self._moved(self._place(heard, _bare(heard)))
            return
        step = int(found["step"] or found["done"])
        if found["all"]:
            milestones.steps = int(found["all"])
        metrics = found["step"] is not None and bool(self._courses)
        if step <= (milestones.step or 0) and not metrics:
            return
        if metrics:
            self._courses.feed(raw[found.start("step") - 5 :], lambda: self._place(heard, _bare(heard)), step)
        if step <= (milestones.step or 0):
            return
        milestones.step, self._found.progress, self._found.complete = step, heard.offset, None
        if self._timed or step == milestones.steps:
            self._found.progressed = self._place(heard, _bare(heard))
        if step == milestones.steps:
            self._found.complete = self._found.progressed

    def _moved(self, place: Place) -> None:
        self._found.progress = max(self._found.progress, place.offset)
        self._found.progressed = place

    def _place(self, heard: Heard, line: Said) -> Place:
        at = _time(heard, line.text) if self._timed else None
        return Place(heard.name, heard.number, heard.offset, line.text[:_LENGTH], line.actors, line.speaker, at)

    def _now(self, text: str) -> float:
        """Seconds since the first line that told a time, as far as this one does."""
        at = time_of(text, _YEAR)
        if at is None:
            return self._milestones.at
        if self._zero is None:
            self._zero = at
        return at - self._zero

    def _version(self, label: Labelled, word: str, heard: Heard) -> None:
        near = heard.block.before(heard.begin, 150) if word.startswith('"') else []
        for name, version in told(label.text, word, near).items():
            self._versions.setdefault(name, version)

    def _phase(self) -> Phase | None:
        return self._milestones.phase if len(self._milestones.begun) > 1 or self._known else None

    def _hit(self, sign: Sign, place: Place, heard: Heard) -> None:
        symptom = sign.symptom
        hit = self._hits.get(symptom.id)
        if hit is None:
            hit = self._hits[symptom.id] = Hit(symptom, place, place, 0, self._milestones.step or 0)
        hit.last, hit.count = place, hit.count + 1
        if hit.since is None or hit.since.offset < self._found.progress or _is_code(hit.since, place):
            hit.since, hit.phase, hit.weight = place, self._phase(), sign.weight
            hit.around = _around(heard, place)

    def _follow(self, heard: Heard) -> None:
        """A traceback, to its end."""
        chain = walk(heard.block, heard.begin, heard.name, heard.number)
        self._headers = {offset for offset in self._headers if offset > heard.offset} | chain.headers
        self._endings = {offset for offset in self._endings if offset > heard.offset} | chain.endings
        for one in chain.exceptions:
            place = replace(one.place, at=_time(heard, "")) if self._timed else one.place
            raised = self._exceptions.add(
                one.name,
                place,
                one.nature,
                progress=self._found.progress,
                phase=self._phase(),
                chained=one.chained,
                handled=one.handled,
                frames=one.frames,
            )
            if raised is not None and not one.chained:
                raised.before = _before(heard)

    def _raised(self, label: Labelled, place: Place, heard: Heard) -> None:
        """An exception without a traceback."""
        found = ALONE.match(label.text)
        if found is None or label.level in ("DEBUG", "INFO", "WARNING"):
            return
        kind = nature(found["name"], found["of"], label.text)
        self._end(found["name"], place, kind, heard)

    def _ended(self, label: Labelled, place: Place, word: str, heard: Heard) -> None:
        how = ending(label.text, label.level, word)
        if how == "done":
            self._found.finished = place
        elif how == "closed":
            self._closed = place
        elif how == "killed" and heard.offset not in self._endings:
            self._endings.add(heard.offset)
            self._end(label.text.split(":")[0][:60], place, "signal", heard)

    def _end(self, name: str, place: Place, kind: str, heard: Heard) -> Raised | None:
        raised = self._exceptions.add(name, place, kind, progress=self._found.progress, phase=self._phase())  # type: ignore[arg-type]
        if raised is not None:
            raised.before = _before(heard)
        return raised


def _is_code(before: Place, place: Place) -> bool:
    """Whether a sign was seen in a traceback's line of code, and now where the exception itself says it."""
    near = place.file == before.file and place.speaker == before.speaker and place.number < before.number + _UNTIMED
    return near and before.text.startswith("  ") and not place.text.startswith("  ")


def _bare(heard: Heard) -> Said:
    return said(heard.block.content[heard.begin : heard.end].decode("utf-8", "replace"))


def _time(heard: Heard, text: str) -> float | None:
    """By the line itself, or by the last one before it that tells a time."""
    if (own := time_of(text, _YEAR)) is not None:
        return own
    for line in reversed(heard.block.before(heard.begin, _UNTIMED)):
        if (at := time_of(said(line[:_LENGTH]).text, _YEAR)) is not None:
            return at
    return None


def _around(heard: Heard, own: Place) -> tuple[Place, ...]:
    before = _before(heard)
    behind = heard.block.behind(heard.begin, _BEHIND)[1:]
    return (*before, own, *(_place(heard, text, at) for at, text in enumerate(behind, 1)))


def _before(heard: Heard) -> tuple[Place, ...]:
    lines = heard.block.before(heard.begin, _BEFORE)
    return tuple(_place(heard, text, at - len(lines)) for at, text in enumerate(lines))


def _place(heard: Heard, text: str, at: int) -> Place:
    line = said(text.rstrip("\r").rpartition("\r")[2][:4000])
    return Place(
        heard.name, heard.number + at, max(heard.offset + at, 0), line.text[:_LENGTH], line.actors, line.speaker
    )


__all__ = ["CONFIG", "Heard", "Hearing", "Role", "Symptom"]
