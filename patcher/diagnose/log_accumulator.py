"""Take the matched lines of one log in order, and collect the evidence: symptoms, exceptions, ends, versions, progress.

Quoted text does not count: the samples that a trainer prints, and the answers of a server to its clients. The last
lines of a log are kept as well. If the log just stops, they show what it waits for or which error it reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from patcher.diagnose.code_message import is_raised_again
from patcher.diagnose.complaints import complaints
from patcher.diagnose.cut_tracebacks import (
    exception_set_in,
    frames_before,
    frames_below,
    left_off,
    told_failure,
    unfinished,
    without_header,
)
from patcher.diagnose.endings import STACK_WORDS, UNCAUGHT, ending_of
from patcher.diagnose.evidence import LINE_LENGTH, MOST_MATCHED, Call, Evidence, Hit, LogLine, Nature, Raised
from patcher.diagnose.exception_message import is_of_kernel, raised_as
from patcher.diagnose.line_meaning import (
    ALONE,
    TaskFailure,
    begins_anew,
    begins_inner_errors,
    exception_of_hydra,
    is_of_another_rank,
    is_tried,
    is_warning,
    nature,
    printed_message,
    task_failure,
    without_point,
)
from patcher.diagnose.log_stream import AROUND, Block, line_at
from patcher.diagnose.matched_line import MatchedLine, Sign
from patcher.diagnose.metrics import MetricTrends, are_numbers_again
from patcher.diagnose.progress import RunProgress
from patcher.diagnose.python_form import before_pytest, is_listed, pytest_frames
from patcher.diagnose.said_before import first_of, said_before
from patcher.diagnose.told_errors import told_error
from patcher.diagnose.tracebacks import FRAME, HEADER_PATTERN, Chain, follow_traceback, later_phase, lines_of
from patcher.diagnose.version_lines import SERVER_STARTS, version_of_egg, versions_in
from patcher.diagnose.wait_patterns import WaitPatterns
from patcher.logs.labels import strip_labels
from patcher.logs.lines import strip_prefix
from patcher.logs.milestones import Phase

# verl prints samples as `[prompt] …`, `[response] …`, `[score] 0.5`. What a model writes there about errors is no
# error.
_SAMPLE_BEGINS = (b"[prompt]", b"[response]", b"[ground_truth]")
_SAMPLE_ENDS = (b"[score]", b"step:", b"Training Progress:", b"Error executing job with overrides")
"""Text that ends a sample, or cannot be within one."""
_FATAL = b"Fatal Python error: "
"""Printed by Python as it aborts, also in the middle of a sample. The line itself does not belong to the sample."""
# The answer of an OpenAI server to a bad request; the run goes on.
_ANSWERS = (b'{"error":{"message":', b'{"object":"error",')
_SAMPLE_BYTES = 1 << 14
"""Bytes before a line in which the beginning of its sample is searched: a response of some thousand tokens."""


def _is_quoted(block: Block, begin: int, end: int, speaker: str) -> bool:
    """Whether the line from `begin` to `end` is quoted: the answer of a server, or within a sample of the same
    process."""
    if block.content.startswith(_ANSWERS, begin):
        return True
    low = max(0, begin - _SAMPLE_BYTES)
    opened = max([block.content.rfind(mark, low, end) for mark in _SAMPLE_BEGINS])
    if opened < 0:
        return False
    closed = max([block.content.rfind(mark, low, begin) for mark in _SAMPLE_ENDS])
    if opened < max(closed, block.content.rfind(_FATAL, low, end)):
        return False
    at, until = block.bounds(opened)
    first = line_at(block, at, until)
    return first.speaker == speaker and first.text.startswith("[")


LAST_LINES = 40
"""How many of the last lines are kept. Set by hand: eight ranks that end together print a few lines each."""


def _last_lines(block: Block, name: str) -> tuple[LogLine, ...]:
    """The last lines of a log's last block that are not empty; of a progress bar its last state."""
    own = max(0, block.end - AROUND)
    lines = block.content[own : block.end].split(b"\n")
    number = block.number + block.lines
    offset = block.offset + block.end - block.begin
    found: list[LogLine] = []
    for at, raw in enumerate(reversed(lines)):
        offset -= len(raw) + (1 if at else 0)
        state = raw.rstrip(b"\r").rpartition(b"\r")[2][-4000:]
        stripped = strip_prefix(state.decode("utf-8", "replace"))
        if stripped.text.strip():
            found.append(LogLine.of(name, number - at, max(offset, 0), stripped))
            if len(found) == LAST_LINES:
                break
    return tuple(reversed(found))


MOST_EXCEPTIONS = 100
"""How many different exceptions are kept, of the first and of the last. Two that differ in numbers only are the same.
"""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


class Exceptions:
    """Collects the exceptions of a log, and the processes that ended without one."""

    def __init__(self) -> None:
        self._first: dict[str, Raised] = {}
        self._last: dict[str, Raised] = {}

    def all(self) -> list[Raised]:
        """Sorted by the first line that counts."""
        return sorted((*self._first.values(), *self._last.values()), key=lambda one: one.place.offset)

    def add(self, one: Raised, progress: int) -> Raised | None:
        """Add an occurrence.

        Args:
            progress: the offset of the last sign of progress. What occurred before it was survived.

        Returns the exception if this occurrence is now its first that counts, so that the caller adds the lines before
        it; else None.
        """
        key = f"{one.chained}{one.handled}{_NUMBER.sub('0', one.place.text[:200])}"
        if (known := self._first.get(key) or self._last.get(key)) is not None:
            known.count += 1
            known.last = one.place
            carried = is_raised_again(known.calls) and bool(one.calls) and not is_raised_again(one.calls)
            if known.place.offset >= progress and not carried:
                if not known.frames:
                    known.frames, known.calls = one.frames, one.calls
                    known.message = one.message or known.message
                return None
            known.place, known.phase, known.frames, known.message = one.place, one.phase, one.frames, one.message
            known.calls, known.because = one.calls, None
            return known
        kept = self._first if len(self._first) < MOST_EXCEPTIONS else self._last
        if len(kept) >= MOST_EXCEPTIONS:
            kept.pop(next(iter(kept)))
        kept[key] = one
        return one


_BEFORE, _BEHIND = 3, 4
"""Lines before and after a match that are kept, to be shown with it. Set by hand."""
_CONFIG = 150
"""Lines before a version in which its context is searched, such as the head of a model's configuration printed as JSON.
"""
_SET_IN = 8
"""Lines before an indented exception in which a frame of its traceback is searched."""
_MOST_INNER = 20
"""Places with another process's errors that are kept, the last ones."""
_ABOVE_STACK = 6
"""Lines before a stack of C++ in which the fatal line is searched: its message may have some lines."""
_CODE = 40
"""Lines after a line of code in which the exception itself is searched."""


class LogAccumulator:
    """Takes the lines that hold a word of a pattern, in order, and collects the evidence."""

    def __init__(self, trends: MetricTrends, waits: WaitPatterns) -> None:
        self.run = RunProgress(trends)
        self._waits = waits
        self._exceptions = Exceptions()
        self._found = Evidence()
        self._hits: dict[str, Hit] = {}
        self._lost: dict[str, str] = {}
        """The line in which a course was last seen to be bad, by the symptom: a later one may show it good again."""
        self._versions: dict[str, str] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._closed: LogLine | None = None
        self._wait_before_end: Hit | None = None
        self._origins: set[str] = set()
        self._engines: set[str] = set()
        self._headers: set[int] = set()
        self._endings: set[int] = set()
        self._stages: dict[int, Phase] = {}
        """The phase that a traceback shows, by the offset of the traceback's last line."""

    def take(self, line: MatchedLine) -> None:
        """Take one line, with the words that it holds."""
        held = line.held
        for symptom, lost in tuple(self._lost.items()):
            if are_numbers_again(lost, line.stripped.text):
                del self._lost[symptom], self._hits[symptom]
        if self.run.looping and held.is_brief:
            self.run.take_step(line)
            return
        self._origins |= held.origins
        self._engines |= held.engines
        self._found.of_run = self._found.of_run or held.of_run
        if not line.stripped.text:
            return
        if held.inner and begins_inner_errors(line.stripped.text):
            self._found.inner = (*self._found.inner, line.place)[-_MOST_INNER:]
        if held.milestone or held.progress:
            self.run.take(line)
        if held.matters and _is_quoted(line.block, line.begin, line.end, line.stripped.speaker):
            return
        if held.header and line.offset not in self._headers:
            self._add_traceback(line)
        for sign in held.signs:
            if sign.found(line, self.run.step or 0) and not (is_tried(line.stripped.text) or _is_listing(line)):
                self._add_hit(sign, line)
        for word, role in held.ends_or_versions:
            if role.ending:
                self._add_ending(word, line)
            if role.version:
                self._add_versions(word, line)
                if word == SERVER_STARTS and not line.stripped.speaker:
                    self._found.started = line.place
        if line.offset not in self._endings and held.raised:
            self._add_exception_line(line)
        if held.told and (words := told_error(line.place.text)):
            raised = self._add_failure("", "told", line)
            if raised is not None:
                raised.message = (words,)

    def close(self, name: str, last: Block | None, size: int) -> None:
        """A file is complete: count its lines, and keep its last ones. `last` is its last block, `size` its bytes."""
        found = self._found
        found.size += size
        if last is None:
            return
        lines = last.number + last.lines - (last.content[last.end - 1 : last.end] == b"\n")
        found.lines += lines
        self._ends[name] = lines, last.offset + last.end - last.begin
        found.last = (*found.last, *_last_lines(last, name))[-LAST_LINES:]
        for place in reversed(found.last):
            if self.run.last_time(place.text):
                break

    def evidence(self) -> Evidence:
        """The evidence of all that was taken."""
        found = self._found
        self.run.fill(found)
        found.hits, found.raised = list(self._hits.values()), self._exceptions.all()
        for call in (call for one in found.raised for call in one.calls):
            for name, version in version_of_egg(call.frame).items():
                self._versions.setdefault(name, version)
        found.versions, found.ends = self._versions, self._ends
        found.origins, found.engines = frozenset(self._origins), frozenset(self._engines)
        found.complained = complaints(found.last)
        if self._closed is not None and self._closed.offset >= (found.last[0].offset if found.last else 0):
            found.closed = self._closed
        found.unfinished = unfinished(found.last) if found.last else None
        if found.finished is None:
            found.wait = self._waits.found(found.last)
            found.wait_before_end = self._wait_before_end
        if found.blank and (told := told_failure(found.last)) is not None:
            found.raised = [told]
        elif found.blank:
            found.unfinished = left_off(found.last)
        return found

    def _add_hit(self, sign: Sign, line: MatchedLine) -> None:
        place, symptom = line.place, sign.symptom
        hit = self._hits.get(symptom.id)
        if hit is None:
            hit = self._hits[symptom.id] = Hit(symptom, place, place, 0, self.run.step or 0)
        hit.last, hit.count = place, hit.count + 1
        if symptom.kind == "course":
            self._lost[symptom.id] = line.stripped.text
        waited = self._wait_before_end
        if symptom.part == "end" and (waited is None or waited.first.offset < self.run.progress):
            self._wait_before_end = self._waits.found(line.before(_BEFORE))
        if hit.since is None or hit.since.offset < self.run.progress or _is_source_line(hit.since, place):
            hit.since, hit.weight = place, sign.weight
            hit.phase = later_phase(self.run.phase, self._stages.get(line.offset))
            hit.around, hit.matched = line.around(_BEFORE, _BEHIND), ()
        if len(hit.matched) < MOST_MATCHED:
            hit.matched = (*hit.matched, place)

    def _add_traceback(self, line: MatchedLine) -> None:
        """Follow a traceback to its end."""
        chain = follow_traceback(line.block, line.begin, line.name, line.number)
        _complete_by_task(chain, line)
        self._headers = {offset for offset in self._headers if offset > line.offset} | chain.headers
        self._endings = {offset for offset in self._endings if offset > line.offset} | chain.endings
        self._stages = {offset: phase for offset, phase in self._stages.items() if offset > line.offset}
        at = line.time() if line.timed and chain.exceptions else None
        for one in chain.exceptions:
            if one.phase is not None:
                self._stages[one.place.offset] = one.phase
            if line.timed:
                one.place = one.last = replace(one.place, at=at)
            one.phase = later_phase(self.run.phase, one.phase)
            one.repeated = _is_repeated(line, one.place)
            raised = self._exceptions.add(one, self.run.progress)
            if raised is not None and not one.chained:
                raised.before = line.before(_BEFORE)
                raised.because = said_before(raised, line)

    def _add_exception_line(self, line: MatchedLine) -> None:
        """Add an exception that no traceback header was seen for."""
        label = line.label
        if label.level in ("DEBUG", "INFO", "WARNING") or is_warning(line.stripped.text):
            return
        if (task := task_failure(label.text)) is not None:
            self._add_task(task, line)
            return
        found = ALONE.match(without_point(label.text))
        if found is None and label.text[:1].isspace():
            found = exception_set_in(label.text, line.before(_SET_IN))
        if found is None:
            self._add_nameless(line)
            return
        raised = self._add_failure(found["name"], nature(found["name"], found["of"], label.text), line)
        if raised is not None:
            raised.message = tuple(_message(line))
            self._add_frames(raised, line)

    def _add_task(self, task: TaskFailure, line: MatchedLine) -> None:
        """Add the exception of a task of asyncio, where no traceback follows that tells more."""
        if any(HEADER_PATTERN.search(text) for text in line.block.behind(line.begin, _TRACEBACK_OF_TASK)[1:]):
            return
        raised = self._add_failure(task.name, nature(task.name, None, task.message), line)
        if raised is not None:
            raised.message, raised.calls = (f"{task.name}: {task.message}",), (Call(task.frame),)

    def _add_nameless(self, line: MatchedLine) -> None:
        """Add an exception whose message stands without its name: printed by a program, or below the frames of its
        traceback."""
        kind: Nature = "exception"
        said = line.label.text.lstrip()
        quoted = next((exception_of_hydra(said, strip_labels(one.text).text) for one in line.before(1)), None)
        if printed := printed_message(said):
            name, said, kind = raised_as(printed), printed, "printed"
        elif quoted is not None:
            name, said = quoted["name"], quoted["message"]
        elif line.label.label.startswith("E ") and said.startswith("assert "):
            above = line.before(1)
            name = "AssertionError" if above and not above[0].text.startswith("E ") else ""
        else:
            speaker = line.stripped.speaker
            before = line.before(_CODE, speaker)
            warned = bool(before) and is_warning(before[-1].text)  # Its message may have a second line.
            above = without_header(before, speaker, line.label.label) if not warned else ()
            name = raised_as(said) if above else ""
        if not name:
            return
        if said.rstrip().endswith(":") and (rest := line.around(0, 1)[1:]) and rest[0].text.lstrip()[:1] == "'":
            said = f"{said.rstrip()} {rest[0].text.strip()}"  # A terminal has wrapped it.
        raised = self._add_failure(name, kind, line)
        if raised is not None:
            raised.message = (f"{name}: {said}",)
            self._add_frames(raised, line)

    def _add_frames(self, raised: Raised, line: MatchedLine) -> None:
        """Add the frames of a traceback without a header, or those that pytest prints around the exception."""
        speaker = line.stripped.speaker
        frames, raised.calls = frames_before(line.before(_CODE, speaker), speaker, line.label.label)
        prefix = before_pytest(line.label.label)
        if not frames and prefix is not None:
            frames = pytest_frames(line.before(_CODE), line.around(0, _CODE), raised.name, prefix)
        elif not frames and not raised.calls:
            raised.calls = frames_below(line.around(0, _CODE), speaker)
        raised.frames = frames
        raised.before = tuple(one for one in raised.before if one.number < first_of(raised).number)
        raised.because = said_before(raised, line)

    def _add_ending(self, word: str, line: MatchedLine) -> None:
        how = ending_of(line.label.text, line.label.level, word)
        if how == "done":
            self._found.finished = line.place
        elif how == "closed":
            self._closed = line.place
        elif how == "failed":
            self._found.failed = line.place
        if how in ("killed", "failed") and line.offset not in self._endings:
            self._endings.add(line.offset)
            if word in STACK_WORDS and self._add_abort(line):
                return
            if word in UNCAUGHT:
                said = (line.label.text.strip(),)
                one = Raised("", line.place, line.place, "signal", phase=self.run.phase, message=said)
                self._exceptions.add(one, self.run.progress)
                return
            self._add_failure(line.label.text.split(":")[0][:60], "signal", line)

    def _add_abort(self, line: MatchedLine) -> bool:
        """Add what a process of C++ aborted for: the line before its stack. Returns whether there is one."""
        for place in reversed(line.before(_ABOVE_STACK)):
            label = strip_labels(place.text)
            if place.speaker == line.stripped.speaker and label.level in ("FATAL", "ERROR", "CRITICAL"):
                one = Raised("", place, place, "signal", phase=self.run.phase, message=(label.text.strip(),))
                self._exceptions.add(one, self.run.progress)
                return True
        return False

    def _add_failure(self, name: str, kind: Nature, line: MatchedLine) -> Raised | None:
        one = Raised(name, line.place, line.place, kind, phase=self.run.phase)
        one.repeated = _is_repeated(line, line.place)
        raised = self._exceptions.add(one, self.run.progress)
        if raised is not None:
            raised.before = line.before(_BEFORE)
        return raised

    def _add_versions(self, word: str, line: MatchedLine) -> None:
        near = line.block.before(line.begin, _CONFIG) if word.startswith('"') else []
        for name, version in versions_in(line.label.text, word, near).items():
            self._versions.setdefault(name, version)


def _is_listing(line: MatchedLine) -> bool:
    """Whether a line is of the code that IPython shows around the line that failed."""
    return any(is_listed(line.stripped.text, place.text) for place in line.before(1))


_TRACEBACK_OF_TASK = 2
"""Lines below what asyncio says of a task in which its traceback begins."""


def _complete_by_task(chain: Chain, line: MatchedLine) -> None:
    """Give the last exception of a chain the name, message and function that asyncio has told above the traceback,
    where the chain is cut off before that exception."""
    above = (strip_labels(one.text).text for one in line.before(_TRACEBACK_OF_TASK))
    task = next((found for text in above if (found := task_failure(text)) is not None), None)
    last = chain.exceptions[-1] if chain.exceptions else None
    if task is None or last is None or last.name.rpartition(".")[2] == task.name.rpartition(".")[2]:
        return
    last.name, last.message = task.name, (f"{task.name}: {task.message}",)
    last.calls = (Call(task.frame), *last.calls)


def _is_repeated(line: MatchedLine, place: LogLine) -> bool:
    """Whether Ray has printed that line only as one more of those that it held back: `[repeated 8x across cluster]`."""
    block = line.block
    begin = place.offset - block.offset + block.begin
    end = block.content.find(b"\n", begin)
    return _REPEATED in block.content[begin : end if end >= 0 else len(block.content)]


_REPEATED = b"x across cluster]"


def _message(line: MatchedLine) -> Iterator[str]:
    """The lines of an exception's message, without labels. Another label with a level ends it."""
    yield without_point(line.label.text.lstrip())
    kernel = is_of_kernel(line.label.text)
    for text in line.block.behind(line.begin, lines_of(line.label.text)[0])[1:]:
        stripped = strip_prefix(text)
        if stripped.speaker != line.stripped.speaker or is_of_another_rank(stripped.text, line.label.label):
            continue
        label = strip_labels(stripped.text)
        if kernel and not label.text.strip():
            continue
        if label.level or not label.text.strip() or ALONE.match(label.text) or begins_anew(stripped.text):
            return
        if FRAME.match(label.text):
            return  # Pasted text may have the exception above its frames.
        yield label.text[:LINE_LENGTH]


def _is_source_line(before: LogLine, place: LogLine) -> bool:
    """Whether `before` is the line of code in a traceback, and `place` the line of the exception itself with the same
    text."""
    near = place.file == before.file and place.speaker == before.speaker and place.number < before.number + _CODE
    # Pasted text may have lost some of its indentation.
    return near and _SOURCE.match(before.text) is not None and not place.text.startswith("    ")


_SOURCE = re.compile(r" {4}|\s+raise [A-Z]")
