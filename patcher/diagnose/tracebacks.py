"""Follow a traceback among the output of other processes: its chain of exceptions, their frames, and the root of the
chain.

Frames in functions of verl also show the phase of the run, often before the log does: a traceback is printed at once,
while other output may still be buffered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from patcher.diagnose.evidence import LINE_LENGTH, Call, LogLine, Nature, Raised
from patcher.diagnose.exception_message import has_words, is_of_fields, is_of_kernel, raised_as
from patcher.diagnose.failed_code import is_whole, literal_raised
from patcher.diagnose.line_meaning import (
    ALONE,
    ENDING,
    announces,
    begins_anew,
    is_of_launcher,
    nature,
    was_handled,
    without_point,
)
from patcher.diagnose.log_stream import AROUND, Block, line_at
from patcher.diagnose.message_words import straight
from patcher.diagnose.python_form import in_python_form, ipython_header, is_boxed_header
from patcher.logs.labels import is_native, strip_labels
from patcher.logs.lines import strip_prefix
from patcher.logs.milestones import PHASES, Phase

# Functions of verl 0.5 to 0.8 that run in a phase of which the log shows nothing yet.
_FUNCTIONS: dict[str, Phase] = {
    "create_rl_dataset": "dataset",
    "create_rl_sampler": "dataset",
    "_create_dataloader": "dataset",
    "_read_files_and_tokenize": "dataset",
    "maybe_filter_out_long_prompts": "dataset",
    "create_resource_pool": "resource-pool",
    "_build_model_optimizer": "actor",
    "_build_module": "actor",
    "_build_fsdp_module": "actor",
    "init_model": "actor",
    "_build_rollout": "rollout",
    "get_rollout_class": "rollout",
    "_initialize_llm_servers": "rollout",
    "init_hybrid": "rollout",
    "init_standalone": "rollout",
    "launch_server": "rollout",
    "launch_servers": "rollout",
}
_FUNCTION = re.compile(r"/verl/[^\"]+\", line \d+, in (?P<name>\w+)$")


def phase_of_frames(frames: Iterable[str]) -> Phase | None:
    """The phase that the innermost frame of a known function belongs to; None where there is no such frame."""
    found = None
    for frame in frames:
        if (match := _FUNCTION.search(frame)) is not None:
            found = _FUNCTIONS.get(match["name"], found)
    return found


def later_phase(logged: Phase | None, reached: Phase | None) -> Phase | None:
    """The later of two phases, or the one that is known."""
    if logged is None or reached is None:
        return logged or reached
    return max(logged, reached, key=PHASES.index)


# A process that passes on the output of another puts its own level first: `… - INFO - [rank7]: Traceback`.
_STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\]"
_RELAYED = re.compile(rf".*(?:\[rank ?\d+\]: ?|(?<=\S ){_STAMP} ?)")
_STAMP_WITHIN = re.compile(rf".*\S (?={_STAMP})")


def _relayed(text: str) -> str:
    """A line as its own process wrote it, without the prefix of a process that passes it on."""
    found = _RELAYED.match(text[:200])
    return text[found.end() :] if found is not None else text


HEADER = "traceback (most recent call last)"
LINES = 800
"""Lines that are read after a header: eight processes may print tracebacks of 100 lines at once."""
_BEHIND = 25
"""Lines of the same process after an exception within which the chain may go on: a message may be that long."""
MESSAGE = 12
"""Lines of a message that are kept, after its first."""
_OF_KERNEL = 150
"""The same where the message is the source of a kernel, below which the reason stands. Set by hand."""
_OF_FIELDS = 40
"""The same where the message names one field after another, with three lines for each. Set by hand."""
_FRAMES = 6
"""Frames that are kept. Set by hand: what a reader looks at, innermost last."""

HEADER_PATTERN = re.compile(re.escape(HEADER), re.IGNORECASE)
FRAME = re.compile(r'\s*File "(?P<path>[^"]+)"(?=, (?:line \d|in \S))(?:, line \d+)?(?:, in (?P<function>.+))?')
# `During handling of the above exception` mostly leads nearer to the root: `except: raise ValueError(…)`. Not so for an
# exception within `close()` or `__exit__`, which only failed to clean up.
_TIDYING = re.compile(r", in (?:_*(?:clean_?up|close|shutdown|destroy|tear_?down|release|stop)\w*|__a?exit__|__del__)$")
TIME = re.compile(r"\d+(?:[-:.,/]\d+)+")
_GROUP = re.compile(r"(?P<margin>.*?)\s*\+ (?:Exception Group )?$")
_DIRECT = "The above exception was the direct cause"
_HANDLING = "During handling of the above exception"
# Frames of installed packages say less than those of the trainer's own code, so those are kept first.
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen ", "<string>")

_EACH_LINE = re.compile(r"[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d (?:\[|\w+\.py:\d+\])")
"""A logger that puts its label before each line. If a traceback has no such label, the line before it does not announce
it."""


@dataclass(slots=True)
class _Link:
    """One exception of a chain."""

    raised: Raised
    then: str = ""
    """How the next exception of the chain followed from it: `direct`, `handling`, or "" for a wrapper that carries it.
    """


_TRACKS = re.compile(r"multiprocessing[/\\]resource_tracker\.py")
"""Python's own process that removes what ended processes have left: it finds less than it was told of, and goes on."""
_OF_PROGRAM = re.compile(r"\brunpy\.py\", line \d+, in _run_module_as_main\b")


def _is_of_program(calls: Sequence[Call]) -> bool:
    """Whether a traceback begins where Python starts the program, `python -m x`: nobody is left to handle it."""
    return bool(calls) and _OF_PROGRAM.search(calls[0].frame) is not None


@dataclass(frozen=True, slots=True)
class Chain:
    """The exceptions of one traceback. `headers` and `endings` are the offsets of its lines that must not be read
    again."""

    exceptions: tuple[Raised, ...]
    """Each with the phase that its frames show."""
    headers: frozenset[int]
    endings: frozenset[int]


def follow_traceback(block: Block, start: int, name: str, number: int) -> Chain:
    """Follow the traceback whose header is the line that begins at `start`, skipping the output of other processes.

    Args:
        name: the file.
        number: the number of the header's line.
    """
    reader = _TracebackReader(block, start, name, number)
    reader.read()
    return reader.chain()


class _TracebackReader:
    """Reads one traceback line by line; `read` first, then `chain`."""

    def __init__(self, block: Block, start: int, name: str, number: int) -> None:
        self._block, self._start, self._name, self._number = block, start, name, number
        head = line_at(block, start, block.bounds(start)[1])
        found = HEADER_PATTERN.search(head.text)
        foreign = bool(ipython_header(head.text)) or is_boxed_header(head.text)
        label = head.text[: found.start()] if found and not foreign else ""
        if group := _GROUP.match(label):
            label = group["margin"] + "  | " if group["margin"].strip() else label.partition("+")[0] + "| "
        self._head = head
        self._speaker = head.speaker
        self._label = label
        self._own = label_pattern(label)
        outer = _STAMP_WITHIN.match(label)
        self._outer = label_pattern(outer[0]) if outer is not None else None
        """The prefix of the process that passes the traceback on, where the label holds more than that prefix."""
        self._bare = not label
        self._handled = self._is_handled(label)
        self._links: list[_Link] = []
        self._frames: list[LogLine] = []
        self._code: LogLine | None = None
        """The line of code below the last frame."""
        self._read: list[str] = []
        """Frames and their code, as read."""
        self._headers: set[int] = set()
        self._since = 0
        """Lines of this process since the last exception."""
        self._margin = 0
        """By how much the whole traceback is indented, as when a server prints one within a message of its own."""
        self._unindented = False
        """Whether the last frame has lost its indentation, as pasted text does."""
        self._named = ""
        """The exception's name, where the last header has it, as IPython's does."""

    def read(self) -> None:
        for place, text in in_python_form(self._own_lines(), foreign=False):
            if not self._take(place, text):
                break
        if self._named and self._frames:  # Cut off before the exception's own line.
            calls = calls_of(self._read)
            said = literal_raised(calls[-1].code) if calls else ""
            self._add_link(self._named, self._code or self._frames[-1], "exception", f"{self._named}: {said}")

    def chain(self) -> Chain:
        links = self._links
        root = 0
        while root < len(links) - 1 and _is_consequence(links[root], links[root + 1]):
            root += 1
        found = tuple(one.raised for one in links)
        if found and found[root].nature != "exception":
            root = max((at for at in range(root) if found[at].nature == "exception"), default=root)
        if found:
            found[root].tried = _tried(links[: root + 1])
        for at, one in enumerate(found):
            one.chained, one.handled = at != root, self._handled and not _is_of_program(one.calls)
            one.handled = one.handled or bool(one.calls and _TRACKS.search(one.calls[-1].frame))
        return Chain(found, frozenset(self._headers), frozenset(one.place.offset for one in found))

    def _is_handled(self, label: str) -> bool:
        """Whether the traceback's label, or the line before it, says that the exception was handled."""
        own = strip_labels(_relayed(label)) if label else None
        if own is not None and announces(own.text):  # `The warm-up failed: Traceback (most recent call last):`
            return was_handled(own.level, own.text, own.level)
        for line in reversed(self._block.before(self._start, 6)):
            stripped = strip_prefix(line)
            if stripped.speaker == self._speaker and stripped.text.strip():
                if own is None and _EACH_LINE.match(stripped.text):
                    break
                before = strip_labels(_relayed(stripped.text))
                loud = "" if is_native(before.label) else before.level
                return was_handled(own.level if own else "", before.text, loud)
        return was_handled(own.level if own else "", "", "")

    def _own_lines(self) -> Iterator[tuple[LogLine, str]]:
        """The lines of this process, without the label that each may have."""
        content, begin = self._block.content, self._start
        offset = self._block.offset - self._block.begin
        for count in range(LINES):
            end = content.find(b"\n", begin, self._start + AROUND)
            line = content[begin : end if end >= 0 else min(begin + 4000, self._start + AROUND)][:4000]
            stripped = strip_prefix(line.decode("utf-8", "replace")) if count else self._head
            if stripped.speaker == self._speaker:
                text = self._unlabelled(stripped.text)
                if text is not None:
                    text = straight(text)
                    shown = text if not self._bare else straight(stripped.text)
                    at = begin + offset
                    yield LogLine(self._name, self._number + count, at, shown[:LINE_LENGTH], stripped.speaker), text
            if end < 0:
                return
            begin = end + 1

    def _unlabelled(self, text: str) -> str | None:
        """The text as the traceback has it; None for a line that is not part of it."""
        if self._bare:
            return text
        if found := self._own.match(text) or self._own.match(text, _indent(text)):
            return text[found.end() :]  # Pasted lines may have got a space before the label.
        if self._outer is not None and (found := self._outer.match(text)):
            return text[found.end() :]
        if not self._frames and not self._links and FRAME.match(text):
            self._bare = True
            return text
        stripped = text.rstrip()
        return "" if stripped and self._label.startswith(stripped) else None

    def _take(self, place: LogLine, text: str) -> bool:
        """Whether the traceback may go on after this line."""
        if HEADER_PATTERN.search(text) or place.offset == self._offset_of_header():
            fresh = not self._links or bool(self._links[-1].then)
            if place.offset != self._offset_of_header() and not fresh and self._links[-1].raised.nature != "wrapper":
                return False
            self._headers.add(place.offset)
            self._named = ipython_header(text)
            self._frames, self._read = [], []
            self._since = 0
            return True
        if not text.strip() or (self._frames and is_of_launcher(text)):
            return True
        # Pasted text may have lost its indentation.
        below = bool(self._frames) and self._code is None and self._unindented and self._ending(text) is None
        if text[0] in " \t" or FRAME.match(text) or below:
            self._read.append(text[:LINE_LENGTH])
            if self._code is None and self._frames:
                self._code = place
            if FRAME.match(text):
                self._frames.append(place)
                self._code = None
                self._margin, self._unindented = max(_indent(text) - 2, 0), not _indent(text)
            if not self._margin or _indent(text) != self._margin:
                return self._count_other_line(text)
            text = text.lstrip()
        if text.startswith((_DIRECT, _HANDLING)) and self._links:
            self._links[-1].then = "direct" if text.startswith(_DIRECT) else "handling"
            return True
        if (found := self._ending(text)) is not None:
            text = without_point(text)
            self._add_link(found["name"], place, nature(found["name"], found["of"], text), text)
            return True
        if self._frames and (name := raised_as(text)):  # A message without its exception's name.
            self._add_link(name, place, "exception", f"{name}: {text}")
            return True
        return self._count_other_line(text)

    def _add_link(self, name: str, place: LogLine, kind: Nature, text: str) -> None:
        phase = phase_of_frames(frame.text for frame in self._frames)
        frames = telling_frames(self._frames)
        if self._code is not None and is_telling(self._code.text):
            frames = (*frames, self._code)
        calls = calls_of(self._read)
        one = Raised(name, place, place, kind, phase=phase, frames=frames, message=(text,), calls=calls)
        self._links.append(_Link(one))
        self._frames, self._read, self._since, self._named = [], [], 0, ""

    def _offset_of_header(self) -> int:
        return self._start + self._block.offset - self._block.begin

    def _ending(self, text: str) -> re.Match[str] | None:
        """The exception of a line that ends a traceback.

        Behind frames, it may have any name. Without frames it is known by its name, and expected only as the first
        exception or as the one that a wrapper carries.
        """
        text = without_point(text)
        if self._frames:
            found = ENDING.match(text)
            # `hooks.append(report)` is code that has lost its indentation, and no `RayTaskError(ValueError)`.
            is_call = found is not None and found["of"] and found["name"].rpartition(".")[2][:1].islower()
            return None if is_call else found
        open_wrapper = bool(self._links) and self._links[-1].raised.nature == "wrapper" and not self._links[-1].then
        return ALONE.match(text) if open_wrapper or not self._links else None

    def _count_other_line(self, text: str) -> bool:
        """Take a line that is neither frame nor exception; it may belong to the last message. Whether to read on."""
        if not self._links or self._frames:
            return True
        last = self._links[-1].raised
        most, behind = lines_of(last.message[0] if last.message else "")
        if self._since == len(last.message) - 1 < most and not strip_labels(text).level and not begins_anew(text):
            last.message = (*last.message, text)
        self._since += 1
        return self._since <= behind


def lines_of(first: str) -> tuple[int, int]:
    """The lines that are kept of a message, after its first, and those within which the chain may go on."""
    if is_of_fields(first):
        return _OF_FIELDS, _OF_FIELDS
    return (_OF_KERNEL, _OF_KERNEL) if is_of_kernel(first) else (MESSAGE, _BEHIND)


def is_telling(code: str) -> bool:
    """Whether a line of code may say more of an exception than its message, as `assert a.shape == b.shape` and
    `self.bar.update(1)` do; `raise ValueError(` does not."""
    return not code.lstrip().startswith("raise")


_CALLS = 24
"""Frames that are kept with their code."""
_MARKS = re.compile(r"\s*[~^][~^ ]*$")
_CODE_LINES = 8


def calls_of(texts: Sequence[str]) -> tuple[Call, ...]:
    """The innermost frames with their code, from the lines of a traceback without labels."""
    found: list[tuple[str, list[str], str]] = []
    for text in texts:
        if FRAME.match(text):
            found.append((text, [], ""))
        elif found and _MARKS.match(text):
            frame, code, marks = found[-1]
            found[-1] = (frame, code, marks or (text if len(code) == 1 else ""))
        elif found and text.strip() and len(found[-1][1]) < _CODE_LINES:
            found[-1][1].append(text)
    if _is_newest_first(found):
        found.reverse()
    for (_, code, _), (called, _, _) in pairwise(found):
        _keep_the_call(code, called)
    return tuple(Call(frame, "\n".join(code), marks) for frame, code, marks in found[-_CALLS:])


def _is_newest_first(found: Sequence[tuple[str, list[str], str]]) -> bool:
    """Whether a debugger has printed the frames: the last one is the program's, and its code calls the one before."""
    functions = [(frame["function"] or "") if (frame := FRAME.match(text)) is not None else "" for text, _, _ in found]
    if len(found) < 2 or functions[-1] != "<module>" or functions.count("<module>") != 1:
        return False
    return any(re.match(rf"\s*{re.escape(functions[-2])}\(", line) for line in found[-1][1])


def _keep_the_call(code: list[str], called: str) -> None:
    """Of several statements below a frame keep the one that calls the next frame's function: another process that
    writes to the same file may have put its own line there."""
    if len(code) < 2 or not all(is_whole(line) for line in code):
        return
    frame = FRAME.match(called)
    name = ((frame["function"] or "") if frame is not None else "").rpartition(".")[2]
    calling = [line for line in code if re.search(rf"\b{re.escape(name)}\(", line)] if name.isidentifier() else []
    if len(calling) == 1:
        code[:] = calling


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


_CUT_NAME = re.compile(r"[a-z](?:Er{0,2}|Erro|Exc(?:e(?:p(?:t(?:io?)?)?)?)?)$")


def _is_consequence(one: _Link, other: _Link) -> bool:
    """Whether the next exception of a chain is nearer to the root: one raised while handling this one, except in
    cleaning up."""
    if one.raised.nature == "wrapper":
        return True
    if _CUT_NAME.search(other.raised.name) and one.raised.message:
        return False  # The log ends within the name, and the first exception has a message.
    tidying = any(_TIDYING.search(place.text) for place in other.raised.frames[-2:])
    return one.then == "handling" and not tidying and not _hides(other.raised, one.raised)


def _tried(links: Sequence[_Link]) -> tuple[str, ...]:
    """The messages of lookups that failed in the same function, in whose handling the last one of a chain was tried:

    try: n = state["iteration"]
    except KeyError: n = state["total_iters"]      ▶ KeyError: 'iteration'
    """
    last = links[-1].raised
    found: list[str] = []
    for one in reversed(links[:-1]):
        same = _looked_up_in(one.raised) == _looked_up_in(last) != ("", "")
        if one.then != "handling" or not same or not one.raised.message:
            break
        found.insert(0, one.raised.message[0])
    return tuple(found)


def _looked_up_in(one: Raised) -> tuple[str, str]:
    """The function whose lookup failed, by file and name; ("", "") for other exceptions."""
    name = one.name.rpartition(".")[2]
    found = FRAME.match(one.calls[-1].frame) if one.calls and name in (*_LOOKUPS, "ImportError") else None
    return (found["path"], found["function"] or "") if found is not None else ("", "")


_LOOKUPS = ("KeyError", "IndexError", "AttributeError", "LookupError", "StopIteration", "ModuleNotFoundError", "Empty")
"""Exceptions that code expects, so that what it raises for them says more."""


def _hides(other: Raised, one: Raised) -> bool:
    """Whether an exception with a fixed text, `except: raise ImportError("please install x")`, was raised for any other
    that came, whose own words tell what is wrong.

    It is raised by the function that caught the other. What another one raises is of what was tried instead:
    `except FileNotFoundError: self.read_other_form()`.
    """
    if one.nature != "exception" or one.name.rpartition(".")[2] in _LOOKUPS or not other.calls:
        return False
    if one.calls and _function(other.calls[-1]) not in map(_function, one.calls):
        return False
    text = literal_raised(other.calls[-1].code)
    said = one.message[0].partition(":")[2] if one.message else ""
    return bool(text) and has_words(said)


def _function(call: Call) -> tuple[str, str]:
    """The function of a frame, by file and name."""
    found = FRAME.match(call.frame)
    return (found["path"], found["function"] or "") if found is not None else ("", "")


def label_pattern(label: str) -> re.Pattern[str]:
    """A pattern for the label on each line of a traceback. Times in it may differ from line to line."""
    parts = [re.escape(part) for part in TIME.split(label)]
    return re.compile(r"[\d:.,/-]+".join(parts))


def telling_frames(frames: list[LogLine]) -> tuple[LogLine, ...]:
    """The innermost frames, those of the user's own code before those of libraries, in the order of the traceback."""
    own = [place for place in frames if not any(sign in place.text for sign in _LIBRARIES)]
    kept = {*own[-4:], *frames[-2:]} if len(own) >= 3 else {*own, *frames[-_FRAMES:]}
    return tuple(place for place in frames if place in kept)
