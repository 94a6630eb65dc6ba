"""Public issues about a failure, looked up by exception, normalised message and innermost frame.

    ImportError: cannot import name 'HybridCache' from 'transformers' (/opt/env/…/transformers/__init__.py)
    ▼
    ImportError │ cannot import name 'HybridCache' from 'transformers' │ peft/peft_model.py ▶ huggingface/peft#3333

The index is `symptoms/known-issues.tsv`, made by `python -m bench.known_issues`. It holds facts and links only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from patcher.data import shipped
from patcher.diagnose.exception_message import TELLING_ALONE, is_of_fields, parse_message
from patcher.logs.labels import strip_labels

FILE = "known-issues.tsv"
COLUMNS = ("exception", "message", "frame", "thread", "fixed in", "about")
_TYPE = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?P<type>(?:[A-Z]\w*)?(?:Error|Exception|Exit|Interrupt|Enabled)(?:\(\w+\))?): *"
)
_VOLATILE = (
    (re.compile(r" ?\([^()]*\.(?:py|so)\)"), ""),
    (re.compile(r"<object object at 0x[0-9a-f]+>"), "<object object>"),
    (re.compile(r"(?:[\w.+@~-]*/)+(?=[\w.+@-])"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b"), "0"),
    (re.compile(r"(?<![A-Za-z])\d+(?:\.\d+)*"), "0"),
)
_LONGEST = 160
"""Characters of a message that are compared. A message with C++ names or shapes may be much longer."""
_TELLING = 24
"""Characters above which a message identifies a failure alone. `KeyError: 'type'` does so only with its frame."""
_ANYWHERE = re.compile(
    r"\w+ (?:assignment )?index out of range|pop from an empty|Expecting value|Extra data"
    r"|(?:too many|not enough) values to|string indices must be|'\w+' object (?:is not|does not support|cannot be)"
    r"|(?:object|argument) of type '\w+' |(?:can't|cannot) pickle|m(?:ax|in)\(\) |unsupported operand"
    r"|(?:float |integer )?(?:division|modulo|division or modulo) by zero"
    r"|dictionary changed size|The truth value of an? "
    r"|'(?:NoneType|bool|bytes|dict|float|int|list|set|str|tuple)' object has no attribute"
)
"""Messages of Python itself, which any code may cause: they identify a failure only with its frame."""
_MANY_FRAMES = 4
"""So many files with one message: it is a common one, and identifies a failure only with its frame."""
_MOST = 3
_PROJECTS = ("verl-project/", "vllm-project/", "ray-project/", "sgl-project/", "NVIDIA/", "huggingface/", "Dao-AILab/")


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """An issue about a failure. `fixed_in`: a release that the issue names, `vllm 0.8.5`, else ""."""

    exception: str
    message: str
    frame: str
    thread: str
    """`huggingface/peft#3333`."""
    fixed_in: str
    about: str
    """What the issue is about, in one line."""

    @property
    def of_a_project(self) -> bool:
        """Whether the issue is in a project that may contain the fault, and not in one that only uses it."""
        return self.thread.startswith(_PROJECTS)

    @property
    def url(self) -> str:
        repository, _, number = self.thread.partition("#")
        return f"https://github.com/{repository}/issues/{number}"


def normalised(line: str) -> tuple[str, str]:
    """Split an exception's line into its type and a message without paths, numbers and addresses."""
    found = _TYPE.match(line)
    message = line[found.end() :] if found is not None else line
    for pattern, put in _VOLATILE:
        message = pattern.sub(put, message)
    return found["type"] if found is not None else "", " ".join(message.split())[:_LONGEST].rstrip()


def known_issues(line: str, files: Sequence[str] = (), below: Sequence[str] = ()) -> tuple[KnownIssue, ...]:
    """The issues about the failure on a line of a log, the best match first, at most three.

    Args:
        files: those of the traceback's frames, as `peft/peft_model.py`, the innermost last.
        below: the lines of the message below `line`.
    """
    line = strip_labels(line).text.strip()
    exception, message = normalised(" ".join((line, *below[:2])) if is_of_fields(line) else line)
    here = frozenset(files)
    parts = parse_message([line])
    alone = (parts is None or parts.matter in TELLING_ALONE) and not _ANYWHERE.match(message)
    found = [one for one in _of(exception) if _is_about(one, message, here, alone)]
    found = [one for one in found if not _HEADING.fullmatch(one.message) or _shares(one.about, below)]
    if len({one.frame for one in found}) >= _MANY_FRAMES:
        found = [one for one in found if one.frame in here]
    found.sort(key=lambda one: (one.frame not in here, -len(one.message), not one.fixed_in, not one.of_a_project))
    longest = max((len(one.message) for one in found), default=0)
    return tuple(one for one in found if len(one.message) == longest or one.frame in here)[:_MOST]


def _is_about(one: KnownIssue, message: str, files: frozenset[str], alone: bool) -> bool:
    """Whether an issue is about this failure. `alone`: whether such a message identifies the failure without its
    frame."""
    if not message.startswith(one.message) or re.match(r"\w", message[len(one.message) :]):
        return False
    return one.frame in files or (alone and (len(one.message) >= _TELLING or not one.frame))


_HEADING = re.compile(r"0 validation errors? for \w+")
"""The first line of a message of pydantic, which tells no reason: that stands below it."""


def _shares(about: str, below: Sequence[str]) -> bool:
    """Whether a message of pydantic names what an issue is about: a field, or a text that the issue quotes."""
    fields = {line.strip() for line in below if line.strip().isidentifier()}
    quoted = re.findall(r'"([^"]{4,})"', about)
    return not fields.isdisjoint(re.findall(r"\w+", about)) or any(one in "\n".join(below) for one in quoted)


@cache
def _text() -> str:
    return shipped("symptoms").joinpath(FILE).read_text(encoding="utf-8")


def _of(exception: str) -> list[KnownIssue]:
    """The issues with an exception. Only their rows are read: a command needs few of thousands."""
    return read(line for line in _text().splitlines() if line.startswith(f"{exception}\t"))


def read(lines: Iterable[str]) -> list[KnownIssue]:
    """Read the rows of the index, without comments (#)."""
    return [KnownIssue(*line.split("\t")) for line in lines if line and not line.startswith("#")]
