"""Tracebacks of which a log has only a part: the end without the header, or the beginning without the exception.

File "/env/lib/python3.12/site-packages/bridge/names.py", line 40, in name_of
  raise NotImplementedError(f"No mapping of {name} is known")        ◀ the log's last line
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from patcher.diagnose.evidence import Call, LogLine, Raised
from patcher.diagnose.exception_message import raised_as
from patcher.diagnose.failed_code import statement_of
from patcher.diagnose.line_meaning import (
    ALONE,
    RANK,
    begins_anew,
    is_of_another_rank,
    is_of_launcher,
    is_warning,
    was_handled,
)
from patcher.diagnose.python_form import apart, in_python_form, is_foreign_frame
from patcher.diagnose.tracebacks import FRAME, HEADER_PATTERN, TIME, calls_of, is_telling, label_pattern, telling_frames
from patcher.logs.labels import strip_labels

_PASTED = 3
"""Lines of code below a frame where pasted text has lost its indentation. Set by hand: a statement of two lines, marks.
"""


def without_header(before: Sequence[LogLine], speaker: str, label: str = "") -> tuple[LogLine, ...]:
    """The frames of an exception whose traceback has no header, and the line of code below the innermost frame."""
    return frames_before(before, speaker, label)[0]


def frames_before(
    before: Sequence[LogLine], speaker: str, label: str = ""
) -> tuple[tuple[LogLine, ...], tuple[Call, ...]]:
    """As `without_header`, and all frames with their code; only a line of code where that is all there is.

    Ray prints frames below a line of its own, `ray::f() (pid=1)`, and a log may begin in the middle of a traceback.

    Args:
        before: the lines before the exception's line, in order.
        speaker: the prefix of the process; lines of other processes are skipped.
        label: what a launcher has put before the exception's line; lines of other ranks are skipped.
    """
    frames: list[LogLine] = []
    code: list[LogLine] = []
    read: list[str] = []
    own = [
        (place, place.text if is_foreign_frame(place.text) else strip_labels(place.text).text)
        for place in before
        if place.speaker == speaker and not is_of_another_rank(place.text, label) and not is_of_launcher(place.text)
    ]
    if RANK.match(label) and any(RANK.match(place.text) and FRAME.match(text) for place, text in own):
        # The frames without a rank are those of the launcher.
        own = [(place, text) for place, text in own if RANK.match(place.text)]
    held: list[LogLine] = []
    """Lines that have no indentation. They are code if a frame that has none is above them."""
    own = [(place, line) for place, text in own for line in apart(text)]
    for place, text in reversed(list(in_python_form(own))):
        here = replace(place, text=text)
        if text.strip() in _LEFT_OUT:
            continue
        if text[:1] not in (" ", "\t") and not FRAME.match(text):
            if len(held) == _PASTED or not text or ALONE.match(text) or begins_anew(text):
                break
            held.append(here)
            continue
        if held and not (FRAME.match(text) and not text[:1].isspace()):
            break
        for one in held:
            read.append(f"    {one.text}")
            if not frames:
                code = [replace(one, text=f"    {one.text}")]
        held = []
        read.append(text)
        if FRAME.match(text):
            frames.append(here)
        elif not frames:
            code = [here]
    if not frames:
        return (), _code_alone(read[::-1])
    telling = code if code and is_telling(code[0].text) else []
    calls = calls_of(read[::-1])
    if any(_NEWEST_FIRST.match(text) for _, text in own):
        return telling_frames(frames), calls[::-1]
    return (*telling_frames(frames[::-1]), *telling), calls


_LEFT_OUT = ("...", "\u2026", "[...]")
"""Lines in place of frames that somebody has left out."""
_NEWEST_FIRST = re.compile(r"(?:Exception has occurred|\u53d1\u751f\u5f02\u5e38): ")
"""What VS Code prints above the frames of an exception, of which the innermost comes first."""


def frames_below(lines: Sequence[LogLine], speaker: str) -> tuple[Call, ...]:
    """The frames with their code below an exception, as text that quotes the last words first has them.

    Args:
        lines: the exception's line and those below it.
    """
    read: list[str] = []
    headed = False
    label = strip_labels(lines[0].text).label if lines else ""
    for place in lines[1:]:
        if is_of_another_rank(place.text, label):
            break
        text = strip_labels(place.text).text
        if place.speaker == speaker and not read and (not text.strip(" ^~") or HEADER_PATTERN.match(text)):
            headed = headed or bool(text.strip(" ^~"))
            continue  # The marks of a line of code that was cut off, or a header.
        if place.speaker != speaker or not (FRAME.match(text) or (read and text[:1] in (" ", "\t"))):
            # Frames below a header belong to it only where the log ends with them, and without an exception of theirs.
            read = [] if headed else read
            break
        read.append(text)
    return calls_of(read)


def _code_alone(texts: Sequence[str]) -> tuple[Call, ...]:
    """The code above an exception where a log begins behind its frame."""
    *more, last = [text for text in texts if text.strip()] or [""]
    marks = last if more and not last.strip("~^ ") else ""
    code = more[-1] if marks else last
    return (Call("", code, marks),) if code.startswith("    ") and statement_of(code) is not None else ()


def exception_set_in(text: str, before: Sequence[LogLine]) -> re.Match[str] | None:
    """The exception on an indented line, which ends an indented traceback whose header is cut off:

      File "/app/train.py", line 20, in group_of         ◀ its frames are indented by two more
        raise ValueError(
    ValueError: The group 'tp' is not there.
    """
    bare = text.lstrip()
    found = ALONE.match(bare) if bare != text else None
    if found is None:
        return None
    if len(text) - len(bare) == 1 and not any(one.text.strip() for one in before[-1:]):
        return found  # A quotation that begins with a blank.
    if "." in found["name"] and not any(one.text.strip() for one in before):
        return found  # A log that begins with its exception; a docstring names plain ones, `ValueError: if …`.
    frames = [line for one in before if FRAME.match(line := strip_labels(one.text).text)]
    deep = len(frames[-1]) - len(frames[-1].lstrip()) if frames else 0
    return found if frames and len(text) - len(bare) <= deep else None


_RAISES = re.compile(r"raise (?P<name>[A-Za-z_][\w.]*)(?:\(\s*[rbfRBF]*(?P<quote>['\"]+)(?P<words>.+?)(?P=quote))?")
_LABEL = re.compile(r'(?P<label>.*?) {0,2}File "[^"]+", line \d+')


def unfinished(last: Sequence[LogLine]) -> Raised | None:
    """The exception of a traceback with which the log ends before the exception's own line; None where the log ends
    otherwise.

    The name is taken from `raise ValueError("…")` or `assert …` on the last line of code; it is "" for other code.

    Args:
        last: the last lines of the log, in order.
    """
    frames: list[LogLine] = []
    code: list[LogLine] = []
    label = next((found["label"] for place in reversed(last) if (found := _LABEL.match(place.text))), "")
    own, level, before = label_pattern(label), "", strip_labels("")
    lines = [(place, found) for place in last if place.speaker == last[-1].speaker and (found := own.match(place.text))]
    unlabelled = [(place, place.text[found.end() :]) for place, found in lines]
    said, read = "", []
    for place, text in reversed(list(in_python_form(unlabelled))):
        if not TIME.sub("", text).strip():
            continue  # Empty but for the time of a logger.
        if FRAME.match(text) or text[0] in " \t":
            read.append(text)
        if FRAME.match(text):
            frames.insert(0, replace(place, text=text))
        elif HEADER_PATTERN.match(text) and frames:
            level = strip_labels(label).level
        elif text[0] not in " \t" and not (said or code or frames or strip_labels(text).level):
            said = text  # The very last line: a message, without the name of its exception.
        elif text[0] not in " \t":
            before = strip_labels(place.text)  # The line above the traceback, which may announce it as handled.
            break
        elif not frames:
            code.insert(0, replace(place, text=text))
    if not frames or was_handled(level, before.text, before.level):
        return None
    shown = code[0] if code else frames[-1]
    raises = _RAISES.match(" ".join(one.text.strip() for one in code))
    if raises is not None and not raises["name"].rpartition(".")[2][:1].isupper() and not said:
        raises = None  # `raise error` and `raise task.exception()` do not tell which.
    if raises is not None and raises["name"].startswith(said):
        said = ""  # The log ends within the name.
    if said and (raises is None or not raises["name"].rpartition(".")[2][:1].isupper() or begins_anew(said)):
        return None  # Below the code only the message of a class that it raises is expected.
    name = (
        raises["name"] if raises is not None else "AssertionError" if shown.text.lstrip().startswith("assert ") else ""
    )
    message = (f"{name}: {said or raises['words'] or ''}",) if raises is not None else ()
    calls = calls_of(read[::-1])
    return Raised(name, shown, shown, "exception", frames=telling_frames(frames), message=message, calls=calls)


def left_off(last: Sequence[LogLine]) -> Raised | None:
    """The same for a traceback that breaks off below the marks of a look-up, `~~~~^^^^^`, and other lines follow. Only
    for a log that tells nothing else: where another process writes on, the exception's line is mostly there too.

    Args:
        last: the last lines of the log, in order.
    """
    at = max((at for at, place in enumerate(last) if FRAME.match(strip_labels(place.text).text)), default=-1)
    end = at + 1
    while at >= 0 and end < len(last) and last[end].text[:4] == "    ":
        end += 1
    return unfinished(last[:end]) if at >= 0 and _LOOKED_UP.match(last[end - 1].text) else None


_LOOKED_UP = re.compile(r" +~+\^+$")
_ANNOUNCED = 3
"""Lines of the same process between the message and the first frame: `Traceback (most recent call last):` is one."""
_ANNOUNCES = re.compile(
    r"(?:.*[\s\]:(])?\w*(?:exception|error|failed|failure)\b(?:[^:.\'\"]{1,60})?:\s?(?P<message>\S.*)", re.IGNORECASE
)
_FEWEST = 3
"""Words that a message has at least: `Error: 500` says nothing."""


def announced(last: Sequence[LogLine], begin: int) -> tuple[LogLine, str] | None:
    """The line above a traceback that quotes the exception, and the message in it: `Step failed with exception: no
    rows are left`; None where no line does.

    Args:
        last: the last lines of the log, in order.
        begin: the number of the traceback's first frame.
    """
    frame = next((place for place in last if place.number == begin), None)
    if frame is None:
        return None
    above = [place for place in last if place.number < begin and place.speaker == frame.speaker][-_ANNOUNCED:]
    for place in reversed(above):
        text = strip_labels(place.text).text
        found = None if HEADER_PATTERN.search(text) or text[:1] in " \t" else _ANNOUNCES.match(text)
        if found is not None and len(re.findall(r"[A-Za-z]{2,}", found["message"])) >= _FEWEST:
            return place, found["message"].strip()
    return None


_DOES_WITHOUT = re.compile(r"\b(?:ignor|skip|optional|harmless|warning\b|fall\w* ?back)", re.IGNORECASE)


def told_failure(last: Sequence[LogLine]) -> Raised | None:
    """The exception whose message a program has put into a sentence of its own: `Failed to load model: f() got an
    unexpected keyword argument 'a'`.

    Only for a log that tells nothing else: a run may well survive what it tells in that way.
    """
    # A warning's message may have a second line.
    warned = {below for above, below in pairwise(last) if is_warning(above.text) and above.speaker == below.speaker}
    warned |= {place for place in last if is_warning(place.text)}
    for place in reversed(last):
        label = strip_labels(place.text)
        if place in warned or label.level in ("DEBUG", "INFO") or _DOES_WITHOUT.search(label.text):
            continue
        parts = label.text.strip().split(": ")
        for said in (": ".join(parts[at:]) for at in range(min(len(parts), _SENTENCES))):
            if name := raised_as(said):
                return Raised(name, place, place, "printed", message=(f"{name}: {said}",))
    return None


_SENTENCES = 3
"""Parts of a line, apart by colons, at which a message may begin."""
