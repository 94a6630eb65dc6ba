"""What the lines of one run come to, heard in order: how far it came, symptoms, exceptions, ends, versions."""

from __future__ import annotations

from dataclasses import replace

from patcher.diagnose.advancing import Advance
from patcher.diagnose.blocks import Block
from patcher.diagnose.closing import LAST, Waits, complaints, last_words
from patcher.diagnose.courses import Courses
from patcher.diagnose.endings import ending
from patcher.diagnose.evidence import Evidence, Hit, Nature, Place
from patcher.diagnose.exceptions import ALONE, nature
from patcher.diagnose.heard import Heard
from patcher.diagnose.quoting import is_quoted
from patcher.diagnose.raising import Exceptions
from patcher.diagnose.signs import Sign
from patcher.diagnose.stages import later
from patcher.diagnose.telling_versions import told
from patcher.diagnose.tracebacks import walk
from patcher.records.milestones import Phase

_BEFORE, _BEHIND = 3, 4
"""Lines about a sign that are kept."""
_CONFIG = 150
"""Lines before a version in which what it is of is looked for."""
_CODE = 40
"""Lines behind a line of code in which the exception itself is told."""


class Hearing:
    """Takes the lines that hold words, in order, and sums them up."""

    def __init__(self, courses: Courses, waits: Waits) -> None:
        self.advance = Advance(courses)
        self._waits = waits
        self._exceptions = Exceptions()
        self._found = Evidence()
        self._hits: dict[str, Hit] = {}
        self._versions: dict[str, str] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._closed: Place | None = None
        self._headers: set[int] = set()
        self._endings: set[int] = set()
        self._stages: dict[int, Phase] = {}
        """The phase that a traceback tells, by the offset of its last line."""

    def take(self, heard: Heard) -> None:
        """Hear one line."""
        if self.advance.looping and heard.is_brief:
            self.advance.take_step(heard)
            return
        roles = [role for _, role in heard.words]
        if not heard.line.text:
            return
        if any(role.milestone or role.progress or role.config for role in roles):
            self.advance.take(heard)
        if any(role.matters for role in roles) and is_quoted(heard.block, heard.begin, heard.end, heard.line.speaker):
            return
        if any(role.header for role in roles) and heard.offset not in self._headers:
            self._follow(heard)
        for sign in heard.signs():
            if sign.found(heard.line.text, heard.block, heard.begin, self.advance.step or 0):
                self._hit(sign, heard)
        for word, role in heard.words:
            if role.ending:
                self._ended(word, heard)
            if role.version:
                self._version(word, heard)
        if heard.offset not in self._endings and any(role.raised for role in roles):
            self._raised(heard)

    def close(self, name: str, last: Block | None, size: int) -> None:
        """A file has come to its end."""
        found = self._found
        found.size += size
        if last is None:
            return
        lines = last.number + last.lines - (last.content[last.end - 1 : last.end] == b"\n")
        found.lines += lines
        self._ends[name] = lines, last.offset + last.end - last.begin
        found.last = (*found.last, *last_words(last, name))[-LAST:]
        any(self.advance.last_time(place.text) for place in reversed(found.last))

    def evidence(self) -> Evidence:
        """All of it."""
        found = self._found
        self.advance.fill(found)
        found.hits, found.raised = list(self._hits.values()), self._exceptions.all()
        found.versions, found.ends = self._versions, self._ends
        found.complained = complaints(found.last)
        if self._closed is not None and self._closed.offset >= (found.last[0].offset if found.last else 0):
            found.closed = self._closed
        if found.finished is None:
            found.wait = self._waits.found(found.last)
        return found

    def _hit(self, sign: Sign, heard: Heard) -> None:
        place, symptom = heard.place, sign.symptom
        hit = self._hits.get(symptom.id)
        if hit is None:
            hit = self._hits[symptom.id] = Hit(symptom, place, place, 0, self.advance.step or 0)
        hit.last, hit.count = place, hit.count + 1
        if hit.since is None or hit.since.offset < self.advance.progress or _is_code(hit.since, place):
            hit.since, hit.weight = place, sign.weight
            hit.phase = later(self.advance.phase, self._stages.get(heard.offset))
            hit.around = heard.around(_BEFORE, _BEHIND)

    def _follow(self, heard: Heard) -> None:
        """A traceback, to its end."""
        chain = walk(heard.block, heard.begin, heard.name, heard.number)
        self._headers = {offset for offset in self._headers if offset > heard.offset} | chain.headers
        self._endings = {offset for offset in self._endings if offset > heard.offset} | chain.endings
        self._stages = {offset: phase for offset, phase in self._stages.items() if offset > heard.offset}
        at = heard.time() if heard.timed and chain.exceptions else None
        for one in chain.exceptions:
            raised = self._exceptions.add(
                one.name,
                replace(one.place, at=at) if heard.timed else one.place,
                one.nature,
                progress=self.advance.progress,
                phase=later(self.advance.phase, one.phase),
                chained=one.chained,
                handled=one.handled,
                frames=one.frames,
            )
            if raised is not None and not one.chained:
                raised.before = heard.before(_BEFORE)
            if one.phase is not None:
                self._stages[one.place.offset] = one.phase

    def _raised(self, heard: Heard) -> None:
        """An exception without a traceback."""
        label = heard.label
        found = ALONE.match(label.text)
        if found is not None and label.level not in ("DEBUG", "INFO", "WARNING"):
            self._end(found["name"], nature(found["name"], found["of"], label.text), heard)

    def _ended(self, word: str, heard: Heard) -> None:
        how = ending(heard.label.text, heard.label.level, word)
        if how == "done":
            self._found.finished = heard.place
        elif how == "closed":
            self._closed = heard.place
        elif how == "killed" and heard.offset not in self._endings:
            self._endings.add(heard.offset)
            self._end(heard.label.text.split(":")[0][:60], "signal", heard)

    def _end(self, name: str, kind: Nature, heard: Heard) -> None:
        advance = self.advance
        raised = self._exceptions.add(name, heard.place, kind, progress=advance.progress, phase=advance.phase)
        if raised is not None:
            raised.before = heard.before(_BEFORE)

    def _version(self, word: str, heard: Heard) -> None:
        near = heard.block.before(heard.begin, _CONFIG) if word.startswith('"') else []
        for name, version in told(heard.label.text, word, near).items():
            self._versions.setdefault(name, version)


def _is_code(before: Place, place: Place) -> bool:
    """Whether a sign was seen in a traceback's line of code, and now where the exception itself says it."""
    near = place.file == before.file and place.speaker == before.speaker and place.number < before.number + _CODE
    return near and before.text.startswith("    ") and not place.text.startswith("    ")
