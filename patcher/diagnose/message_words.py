"""The words of a message that are quoted: what it advises, what it says itself, and what of it to search for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.exception_message import has_words, is_of_kernel
from patcher.logs.labels import strip_labels

_ADVICE = (
    r"please (?!see|refer|report|file|open|create|check the log|note)",
    r"try (?:to |setting|adding|running|using|reducing|increasing)",
    r"did you mean",
    r"you (?:can|should|need to|must|may want to)\b",
    r"consider (?:setting|using|enabling|increasing|reducing)",
    r"to (?:fix|resolve|avoid|work around|append to your config|use|enable|disable)[ ,]",
    r"supported (?:versions|values|types|dtypes|models|options|backends)\b.* (?:are|is)",
    r"must be (?:one of|in)",
    r"(?:pip|conda|apt|apt-get) install ",
    r"set (?!.{0,40}HYDRA_FULL_ERROR)(?:the environment variable |`?[A-Z_]{4,})",
    r"use `[^`]+` instead",
    r"instead use",
    r"make sure (?:that |to )",
    r"(?:upgrade|downgrade|install) ",
)
_REMEDY = re.compile(
    rf"(?:^|(?<=[.!:;] ))[^.!\n]*?\b(?:{'|'.join(_ADVICE)}).*?(?:[.!](?=\s|$)|$)", re.IGNORECASE | re.MULTILINE
)
_CLOSERS = re.compile(r'",?\)*,?$')
_LONGEST = 300
"""Characters of a remedy that are quoted. Set by hand: about two lines of a terminal."""


def remedy_in(lines: Sequence[str]) -> str:
    """The sentence of a message that advises what to do; "" where there is none."""
    text = "\n".join([re.sub(r"^[\w.]+(?:Error|Exception|Warning)?: ", "", lines[0]), *lines[1:]]) if lines else ""
    found = _REMEDY.search(text)
    remedy = " ".join(found[0].split())[:_LONGEST] if found is not None else ""
    # Where the log ends at a line of code, that closes a quotation and a call: `… pip install kettle>=2")`.
    return _CLOSERS.sub("", remedy) if remedy.count('"') % 2 else remedy


_NAMED = re.compile(r"^(?:[\w.]*(?:Error|Exception|Failure|Interrupt|Exit)\w*|(?:\w+\.)+[A-Z]\w*): *")
_ANSWER = re.compile(r'\{.{0,200}?"message": ?"(?P<words>(?:[^"\\]|\\.)*)')
"""The answer of a server, by itself or quoted by an exception: `{"object":"error","message":"…`."""
_MOST_WORDS = 400
"""Characters of a message that are quoted. Set by hand."""


_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def straight(text: str) -> str:
    """The text with the quotes that Python prints, where a web page has made typographic ones of them, or where it is
    quoted itself: `RuntimeError: ('Worker failed', 'TypeError: argument \\'input\\' …`."""
    return text.translate(_QUOTES).replace("\\'", "'")


_CARET = re.compile(r"\s*\^\s*$")
_OBJECT = re.compile(r"(?P<name>[A-Z]\w*(?:Error|Exception))\((?P<quote>['\"])(?P<words>.+)(?P=quote),?\)$")


def below_caret(lines: Sequence[str]) -> list[str]:
    """What Triton says below the source of a kernel that it cannot compile, as an exception's own lines; none for other
    messages."""
    if not lines or not is_of_kernel(lines[0]):
        return []
    carets = [at for at, line in enumerate(lines) if _CARET.match(strip_labels(line).text)]
    said = [strip_labels(line).text.strip() for line in lines[carets[-1] + 1 :]] if carets else []
    said = [line for line in said if line]
    if said and (found := _OBJECT.match(said[0])) is not None:
        return [f"{found['name']}: {found['words']}"]
    return said


def at_caret(lines: Sequence[str]) -> str:
    """The name in a kernel's source that Triton's caret stands below: `hk0` of `p = hk0 + i`; "" where it is none."""
    line, at = _above_caret(lines)
    found = re.compile(r"[A-Za-z_]\w*").match(line, at)
    return found[0] if found is not None else ""


def line_of_kernel(lines: Sequence[str]) -> str:
    """The line of a kernel's source that Triton's caret stands below, without its comment; "" for other messages."""
    return _above_caret(lines)[0].partition(" #")[0].strip() if below_caret(lines) else ""


def _above_caret(lines: Sequence[str]) -> tuple[str, int]:
    """The line above the last caret that stands alone, and the column of the caret; "" and 0 where there is none."""
    texts = [strip_labels(line).text for line in lines]
    at = next((at for at in range(len(texts) - 1, 0, -1) if _CARET.match(texts[at])), 0)
    return (texts[at - 1], texts[at].index("^")) if at else ("", 0)


def own_words(lines: Sequence[str], named: bool = True) -> str:
    """The message itself, for one of no known form: `Numba needs NumPy 2.2 or less. Got NumPy 2.3.`

    "" for one that has too few words to be understood alone.

    Args:
        named: whether it must begin with the name of an exception; the error of a logger does not.
    """
    first = _NAMED.sub("", lines[0]) if lines else ""
    text = " ".join(" ".join([first, *lines[1:3]]).split())
    if (answer := _ANSWER.match(text)) is not None:
        text = " ".join(answer["words"].replace("\\n", " ").replace('\\"', '"').split())
    if not has_words(text) or (named and lines and not _NAMED.match(lines[0])):
        return ""
    if len(text) <= _MOST_WORDS:
        return text
    if answer is None and not text.startswith("Command "):
        return f"{text[:_MOST_WORDS].rsplit(' ', 1)[0]} …"
    # What failed is wrapped from call to call, so the cause is at the end; so is the exit status of a command.
    half = _MOST_WORDS // 2
    return f"{text[:half].rsplit(' ', 1)[0]} … {text[-half:].partition(' ')[2]}"


_VOLATILE = (
    (re.compile(r"^[\w.-]+:\d+:\d+ \[\d+\] "), ""),  # NCCL's `node1:5120:5300 [2] `
    (re.compile(r"\(?(?:/[\w.+@-]+){2,}\)?"), ""),
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b"), ""),
    (re.compile(r"\b(?:pid|rank|ip|port)[= ]\S+"), ""),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), ""),
)
_MOST_SEARCHED = 160


def to_search_for(line: str) -> str:
    """A message without what differs from run to run: labels, paths, addresses, process ids."""
    line = strip_labels(line).text
    for pattern, put in _VOLATILE:
        line = pattern.sub(put, line)
    return " ".join(line.split())[:_MOST_SEARCHED]


_ELSEWHERE = re.compile(
    r"\b(?:see|check|look at|refer to)\b.{0,30}"
    r"\b(?:stack ?traces?|tracebacks?|root causes?|errors?|exceptions?|logs?)\b.{0,30}\b(?:above|root cause)\b"
    r"|\b(?:see|check) above\b.{0,30}\b(?:root cause|error|traceback)"
    r"|\bis already dead, terminating\b",
    re.IGNORECASE,
)


def points_elsewhere(text: str) -> bool:
    """Whether a line says itself that the cause is told on others: `Shutting down. See stack trace above.`"""
    return _ELSEWHERE.search(text) is not None
