"""What a log says just before a failure that explains it: something is not there, and the code then finds None; or
something did not suffice, and an engine then tells only that it failed.

Dataset path ./corpus_text does not exist
AttributeError: 'NoneType' object has no attribute 'sizes'     ▶ the line above it is the cause
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.evidence import LogLine, Raised
from patcher.diagnose.exception_message import is_about_none
from patcher.diagnose.line_meaning import ALONE, says_absent
from patcher.diagnose.matched_line import MatchedLine
from patcher.logs.labels import strip_labels


def first_of(raised: Raised) -> LogLine:
    """The first line of its traceback that is known."""
    return raised.frames[0] if raised.frames else raised.place


_SHORTLY = 8
"""Lines before the traceback of an exception about None in which what is not there may be named. Set by hand."""
_SEARCHED = 40
"""Lines before the exception's own line in which its traceback and that line are searched."""
_NEXT = 3
"""Lines before the traceback in which a path that does not exist counts, whatever the traceback is about."""
_PATH = re.compile(
    r"(?<![\w:/])(?:[A-Za-z]:\\|\.{0,2}/)[\w.-]|\b\w+\.(?:json|ya?ml|parquet|jsonl|txt|bin|idx|model|safetensors)\b"
)
_WORDS = re.compile(r"[A-Z]?[a-z]{4,}")
_OF_ALL = frozenset("been could does exist file found from into none path self there were with".split())  # noqa: SIM905


def _is_about(text: str, raised: Raised) -> bool:
    """Whether a line and the failing code share a word: `Dataset … does not exist` and `indexed_dataset.sizes`."""
    code = " ".join(f"{one.frame.rpartition('/')[2]} {one.code}" for one in raised.calls[-2:])
    said, done = ({word.lower() for word in _WORDS.findall(one)} - _OF_ALL for one in (text, code))
    return bool(said & done)


def said_before(raised: Raised, line: MatchedLine) -> LogLine | None:
    """The line before an exception about None which says that something does not exist. `line`: the first line of the
    traceback that is known."""
    if not any(is_about_none(text) for text in raised.message[:1]):
        return None
    first, speaker = first_of(raised).number, line.stripped.speaker
    above = [one for one in line.before(_SEARCHED) if one.number < first and one.speaker == speaker]
    for place in reversed(above[-_SHORTLY:]):
        label = strip_labels(place.text)
        if ALONE.match(label.text):
            return None  # Another exception.
        if says_absent(label.text, label.level):
            near = above[-1].number - place.number < _NEXT and _PATH.search(label.text)
            return place if near or _is_about(label.text, raised) else None
    return None


_PROCESS = re.compile(r"\bpid=(\d+)\) ?")
_LOUD = re.compile(r"\b(?:WARN(?:ING)?|ERROR|CRITICAL)\b")
_SHORT = re.compile(
    r"\d[\d.]* ?[<>]=? ?[A-Za-z_(]?\w*[ =]*\d|\binsufficient\b|\bnot enough\b|\bexceed(?:s|ed)?\b"
    r"|\bno (?:free|more) \w+",
    re.IGNORECASE,
)
"""What says that something did not suffice: `free_blocks()=9.0 < wanted=30`."""
_MOST = 160
"""Characters of a line that are quoted within a sentence. Set by hand."""
_JUST = 8
"""Lines before a line that only tells of a failure in which its reason is searched. Set by hand."""


def ran_short(place: LogLine, lines: Sequence[LogLine]) -> tuple[int, str] | None:
    """The number and the words of a warning of the same process, shortly before a line that only tells that something
    failed, which says that something did not suffice; a progress bar may stand in front of it."""
    own = _PROCESS.search(f"{place.speaker} {place.text}")
    near = {line.number: line for line in lines if line.file == place.file and 0 < place.number - line.number <= _JUST}
    for number, line in sorted(near.items(), reverse=True):
        whole = f"{line.speaker} {line.text}"
        loud, process = _LOUD.search(whole), _PROCESS.search(whole)
        if loud is None or (process[1] if process is not None else "") != (own[1] if own is not None else ""):
            continue
        said = strip_labels(whole[process.end() :] if process is not None else line.text)
        if _SHORT.search(said.text):
            return number, " ".join(said.text.split())[:_MOST]
    return None
