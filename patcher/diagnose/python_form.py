"""Tracebacks as IPython, pytest and rich print them, rewritten as Python's own: `File "x.py", line 12, in f`, and the
code.

IndexError      Traceback (most recent call last)     the header of IPython
File ~/x.py:12, in f(a)                               a frame of IPython 8 and 9, with links `File [~/x.py:12](…)`
Cell In[5], line 2                                    one of a cell there; `Input In [5], in f(a)` in 8.0
~/x.py in f(a)                                        one of IPython 7, and of Colab: its line is the arrow's
---> 12     g(a)                                      the arrow, among numbered lines around it
x.py:12: in f                                         a frame of pytest
│ /x.py:12 in f          │                            a frame of rich, in a box
│ ❱ 12 │   │   g(a)      │                            its line of code, among numbered lines around it
a/x.py", line 12, in f                                a frame of Python whose beginning is cut off
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from patcher.diagnose.evidence import LogLine

_HEADER = re.compile(
    r"(?P<name>(?!(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG)\b)[A-Z]\w*)(?: {2,}|(?<=Error) |(?<=Exception) )"
    r"Traceback \(most recent call last\)"
)
_ANY_HEADER = "Traceback (most recent call last)"
_RICH_HEADER = re.compile(r"\u256d\u2500+ Traceback \(most recent call last\)")
_RICH_SIDE = "\u2502"
_RICH_EDGES = ("\u256d\u2500", "\u2570\u2500")
_RICH_FRAME = re.compile(r"(?P<path>[^\s\"<][^\"]*?\.pyx?|<[^<>\"]+>):(?P<line>\d+) in (?P<function>\S.*)$")
_RICH_CODE = re.compile(r"\u2771 +\d+ +\u2502(?P<code>.*)$")
_RICH_BROKEN = re.compile(r"(?:[/~]|[A-Za-z]:\\)\S*$")
_FUNCTION = r"(?P<function><cell line: \d+>|<\w+>|[A-Za-z_][\w.<>]*)(?:\(.*\)?)?"
_PLACED = re.compile(
    r"(?:File (?P<link>\[)?(?P<path>[^\s\"<][^\"]*?\.(?:py|pyx|pxi)|<[^<>\"]+>)|(?P<cell>Cell In ?\[\d+\]))"
    rf"(?::|, line )(?P<line>\d+)(?(link)\]\(\S*\))(?:,? in {_FUNCTION}|,)?$"
)
"""A frame of IPython 8 and 9. A frame of a module names no function."""
_LINKED = re.compile(rf"\[(?P<path>[^\]\s]+)\]\(\S*\) in {_FUNCTION}$")
_UNPLACED = re.compile(
    rf"(?P<path>(?:~|/|\./|[A-Za-z]:\\|<ipython-input-|<command-|(?:Input|Cell) In ?\[)[^\s,]*),? in {_FUNCTION}$"
)
_ARROW = re.compile(r"-*> ?(?P<line>\d+)(?: (?P<code>.*))?$")
_CONTEXT = re.compile(r"\s*\d+(?: .*)?$")
_LINKED_NUMBER = re.compile(r"(?P<before>[\s>-]*)\[(?P<number>\d+)\]\(\S*\)(?= |$)")
"""The number of a line of code as VS Code saves it: `--> [115](https://…/x.py:115)     raise ImportError(`."""
_LEFT_OUT = re.compile(r"\d+ frames$|\s*\[\.\.\. .*\]$")
_CUT = re.compile(
    r"(?:(?:(?:i?l)?e)? ?\")?(?P<path>[^\s\"][^\"]*\.pyx?)\", line (?P<line>\d+)(?:, in (?P<function>\S.*))?$"
)
_COMPILED = (".pyx", ".pxi", ".so", ".pyd", ".c")
_OF_PYTEST = re.compile(r"(?P<path>[\w./~@+-]+\.py):(?P<line>\d+): in (?P<function>\S+)$")


_JOINED = re.compile(
    r'(?P<frame>File "[^"]+", line \d+, in \S+)(?: (?P<code>.*?))?(?=\s*File "[^"]+", line \d+, in |$)'
)


def apart(text: str) -> list[str]:
    """The lines of a traceback that lost its line ends, `File "a.py", line 1, in f g() File "b.py", line 2, in g 1/0`;
    any other line by itself."""
    if text.count('File "') < 2:
        return [text]
    found = [(one["frame"], one["code"]) for one in _JOINED.finditer(text)]
    return [line for frame, code in found for line in (f"  {frame}", *([f"    {code}"] if code else []))] or [text]


def ipython_header(text: str) -> str:
    """The name of the exception in a header of IPython; "" for any other line."""
    found = _HEADER.match(text)
    return found["name"] if found is not None else ""


def is_foreign_frame(text: str) -> bool:
    """Whether a line is a frame as IPython or pytest prints it. Its beginning looks like the label of a logger, so
    labels must not be stripped from it."""
    if _rich_inside(text) is not None or _RICH_HEADER.search(text):
        return True
    return any(form.match(text) for form in (_PLACED, _OF_PYTEST, _LINKED, _UNPLACED, _CUT))


def is_boxed_header(text: str) -> bool:
    """Whether a line is the upper edge of the box in which rich prints a traceback."""
    return _RICH_HEADER.search(text) is not None


def _rich_inside(text: str) -> str | None:
    """What a line in a box of rich says, "" for its edge; None for any other line."""
    bare = text.strip()
    if bare.startswith(_RICH_EDGES):
        return None if _ANY_HEADER in bare else ""
    if bare.startswith(_RICH_SIDE):
        return bare[1:].removesuffix(_RICH_SIDE).strip()
    if bare.endswith(_RICH_SIDE) and (_RICH_FRAME.match(inner := bare[:-1].strip()) or _RICH_CODE.match(inner)):
        return inner  # A piece of a log may begin within the line.
    return None


def _rich_code(code: str) -> str:
    """A line of code without the lines that rich draws where it is indented."""
    return f"    {code.replace(_RICH_SIDE, ' ').strip()}"


def _frame(path: str, line: str | None, function: str | None) -> str:
    place = f'File "{path}", line {line}' if line else f'File "{path}"'
    # IPython and rich write `Module.__getattr__`, where Python writes `__getattr__`.
    name = (function or "<module>").rpartition(".")[2]
    return f"  {place}, in {name}"


def _without_code(header: re.Match[str]) -> str:
    """The frame of a header among others below which no code is shown; "" for one of compiled code, whose caller says
    more."""
    return "" if header["path"].endswith(_COMPILED) else _frame(header["path"], None, header["function"])


def in_python_form(lines: Iterable[tuple[LogLine, str]], foreign: bool = True) -> Iterator[tuple[LogLine, str]]:
    """Rewrite the lines of a traceback, without labels, as Python prints them. IPython's numbered lines of context are
    left out.

    Args:
        foreign: whether to look for frames of IPython and pytest before a header shows the form of the traceback.
    """
    held: tuple[LogLine, str, re.Match[str]] | None = None
    among = False
    """Whether the frame that is held back comes after other frames of IPython."""
    numbered = False
    """Whether the last frame was one of IPython, which numbered lines of code follow."""
    broken = ""
    """The beginning of a frame's line in a box of rich that is broken for its length."""
    boxed = False
    """Whether the lines are those of a traceback in such a box."""
    for place, text in lines:
        if _ANY_HEADER in text:
            foreign, numbered = bool(ipython_header(text)) or is_boxed_header(text), False
            boxed = is_boxed_header(text)
        if not foreign:
            yield place, text
            continue
        if (inside := _rich_inside(text)) is not None:
            whole = broken + inside
            shown, broken = "", ""
            if (found := _RICH_FRAME.match(whole)) is not None:
                shown = _frame(found["path"], found["line"], found["function"].split()[0])
            elif (found := _RICH_CODE.match(inside)) is not None:
                shown = _rich_code(found["code"])
            elif _RICH_BROKEN.match(whole):
                broken = whole
            boxed = boxed or bool(shown or broken)
            if shown:
                yield replace(place, text=shown), shown
            elif not boxed:  # A table.
                yield place, text
            boxed = boxed and not text.strip().startswith(_RICH_EDGES[1])
            continue
        if numbered and (linked := _LINKED_NUMBER.match(text)) is not None:
            text = linked["before"] + linked["number"] + text[linked.end() :]
        arrow = _ARROW.match(text) if numbered else None
        if held is not None and (arrow is not None or not _CONTEXT.match(text)):
            before, written, at = held
            shown = _frame(at["path"], arrow["line"], at["function"]) if arrow is not None else written
            if arrow is None and among:
                shown = _without_code(at)
            if shown:
                yield replace(before, text=shown), shown
            held = None
        if arrow is not None:
            code = f"    {(arrow['code'] or '').strip()}"
            yield replace(place, text=code), code
        elif (found := _PLACED.match(text)) is not None:
            numbered = True
            shown = _frame(found["path"] or found["cell"], found["line"], found["function"])
            yield replace(place, text=shown), shown
        elif (found := _CUT.match(text)) is not None or (found := _OF_PYTEST.match(text)) is not None:
            numbered = False
            shown = _frame(found["path"], found["line"], found["function"])
            yield replace(place, text=shown), shown
        elif (found := _LINKED.match(text) or _UNPLACED.match(text)) is not None:
            held, numbered, among = (place, text, found), True, numbered
        elif not numbered or (text.strip() and not _CONTEXT.match(text) and not _LEFT_OUT.match(text)):
            numbered = False
            yield place, text
    if held is not None and (shown := _without_code(held[2]) if among else held[1]):
        yield replace(held[0], text=shown), shown


_CALLED_AT = re.compile(r"(?P<path>[\w./~@+-]+\.py):(?P<line>\d+): ?(?P<name>\w*)$")
_POINTED = re.compile(r">\s+(?P<code>\S.*)$")
_SECTION = re.compile(r"_{3,} .*_{3,}$|={3,} ")
"""The separator at the beginning of one test."""


_OF_EXCEPTION = re.compile(r"(?<![A-Za-z])E {3,}$")
_DIGITS = re.compile(r"\d+")


def before_pytest(label: str) -> str | None:
    """What stands before pytest's `E   ` in the labels of an exception's line, as a logger that passes it on puts it
    there; None where pytest has not printed the line."""
    found = _OF_EXCEPTION.search(label)
    return label[: found.start()] if found is not None else None


def _without(prefix: str, place: LogLine) -> LogLine:
    head = place.text[: len(prefix)]
    same = _DIGITS.sub("0", head) == _DIGITS.sub("0", prefix)
    return replace(place, text=place.text[len(prefix) :]) if prefix and same else place


def pytest_frames(
    before: Sequence[LogLine], behind: Sequence[LogLine], name: str, prefix: str = ""
) -> tuple[LogLine, ...]:
    """The frames of an exception as pytest prints it by default, outermost first, and last the line of code that raised
    it:

            >       raise RuntimeError("no")         ◀ the code, among other lines of the function
            E       RuntimeError: no

            pkg/a.py:12: RuntimeError                ◀ the place, below it

    Empty where the lines behind name no such place.

    Args:
        before: the lines before the exception's line, in order.
        behind: the lines from there on.
        name: the exception, as printed.
        prefix: what a logger puts before each line.
    """
    before, behind = [_without(prefix, one) for one in before], [_without(prefix, one) for one in behind]
    last_part = name.rpartition(".")[2]
    end = next((place for place in behind if (at := _CALLED_AT.match(place.text)) and at["name"] == last_part), None)
    if end is None or (inner := _CALLED_AT.match(end.text)) is None:
        return ()
    frames: list[LogLine] = []
    code: LogLine | None = None
    for place in reversed(before):
        if _SECTION.match(place.text):
            break
        if code is None and (pointed := _POINTED.match(place.text)):
            code = replace(place, text=f"    {pointed['code']}")
        elif (at := _CALLED_AT.match(place.text)) and not at["name"]:
            frames.insert(0, replace(place, text=_frame(at["path"], at["line"], None)))
    last = replace(end, text=_frame(inner["path"], inner["line"], None))
    telling = code is not None and not code.text.lstrip().startswith("raise")
    return (*frames, last, *([code] if code is not None and telling else []))


_NUMBERED = re.compile(r"\s*(?P<number>\d{1,5}) ")


def is_listed(text: str, above: str) -> bool:
    """Whether a line of code follows another one, or a frame, in a listing of IPython, which numbers them:

    305     raise RuntimeError(
    306         "Cannot start CUDA anew"
    """
    own, other = _NUMBERED.match(text), _NUMBERED.match(above)
    if own is None:
        return False
    return is_foreign_frame(above) if other is None else int(own["number"]) == int(other["number"]) + 1
