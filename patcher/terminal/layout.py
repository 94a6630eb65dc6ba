"""Line wrapping to the width of a terminal, between words; and truncation with an ellipsis (`shortened`).

A name (`vllm.lora.lora_model`), a place (`run_debug.sh:12`) and an id stay whole; only where one is wider than the
whole terminal does it go on in the next line, after a `/` or a `.`. Chinese goes on after any character, but no line
begins with `，` or ends with `（`. A command stays on one line, or goes on with a backslash, so that it can be pasted.
Where a line is a label and its text, further lines begin below the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from patcher.terminal.sequences import SEQUENCE

NARROW = 100
"""Below so many columns a text stands under its label instead of beside it, where that would leave it little room."""
_BESIDE = 0.4
"""The part of the columns that a label may take from the text beside it."""
_FAR = 0.75
"""The part of the columns in which a gap ends a label; further on it is in the text."""
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
# Where a name that is wider than the terminal may be cut: `verl/`, `workers/`, `utils.`, `py`.
_PARTS = re.compile(r"[^/.,=]*[/.,=]+|[^/.,=]+")
_ENDS = (";0m", "p")
"""What ends a sequence that changes a text."""
_OPENING = "（《「『【〔“‘([{"
_CLOSING = "，。；：！？、）》」』】〕”’…,.;:!?)]}"

_WORD = r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"`，。；：！？、（）])+"""
_COMMAND = re.compile(
    rf"(?<![\w/.~-])uky-patch(?: (?!\(){_WORD})*"
    rf"|(?:(?<=: )|(?<=：))(?:cd|export|git|pip|python[\d.]*|ssh|sysctl)(?: (?!\(){_WORD})+"
)
_PROSE = re.compile(r"again|and|as|at|before|by|for|from|in|is|of|on|once|or|that|the|then|there|to|with")
"""Words that end a command within a sentence, as in `uky-patch status and then uky-patch apply`."""


_NUMBER = re.compile(r"\d[\d.]*\w*[,.)]?|\+\d+|\[\d+\]")
"""What stays with the word before it: `vllm 0.20.2`, `utils.py:12 +3`, `text [1]`."""
_NAME = 40
"""The longest name that keeps its number on its line. Set by hand: half a line of 80 columns."""
# A word of ASCII, or a single other character: Chinese may be broken after any.
_PIECE = re.compile(r"[!-~]+|\S")


class _Unit(NamedTuple):
    """A part of a line that is not broken: from `begin` to before `end`."""

    begin: int
    end: int
    command: bool = False


class _Text:
    """A line, and apart from it the sequences of the terminal in it, by where they stand."""

    def __init__(self, line: str) -> None:
        parts = SEQUENCE.split(line)
        self.plain = "".join(parts[::2])
        self.codes: list[tuple[int, str]] = []
        at = 0
        for text, code in zip(parts[::2], parts[1::2], strict=False):
            at += len(text)
            self.codes.append((at, code))
        self._left = list(self.codes)

    def part(self, begin: int, end: int) -> str:
        """The text from `begin` to before `end` with the sequences there; parts are taken in their order, each once."""
        shown = ""
        while self._left and (self._left[0][0] < end or (self._left[0][0] == end and self._left[0][1].endswith(_ENDS))):
            place, code = self._left.pop(0)
            shown += self.plain[begin:place] + code
            begin = max(begin, place)
        return shown + self.plain[begin:end]

    def units(self, begin: int) -> list[_Unit]:
        """What is not broken, from `begin` on."""
        found: list[_Unit] = []
        for one in _pieces(self.plain, begin, self._commands(begin)):
            if found and self._together(found[-1], one):
                found[-1] = _Unit(found[-1].begin, one.end, found[-1].command or one.command)
            else:
                found.append(one)
        return found

    def _together(self, one: _Unit, other: _Unit) -> bool:
        """Whether two stay on one line: what touches, but for Chinese characters, and a number with its name."""
        if one.end + 1 == other.begin and not other.command:
            name, number = self.plain[one.begin : one.end], self.plain[other.begin : other.end]
            return len(name) <= _NAME and name[0].isalpha() and bool(_NUMBER.fullmatch(number)) and not one.command
        if one.end != other.begin:
            return False
        before, after = self.plain[other.begin - 1], self.plain[other.begin]
        return not (is_wide(before) or is_wide(after)) or before in _OPENING or after in _CLOSING

    def _commands(self, begin: int) -> list[tuple[int, int]]:
        marks = [place for place, code in self.codes if code[-1] in "Pp"]
        pasted = list(zip(marks[::2], marks[1::2], strict=False))
        if pasted:
            return pasted
        return [(found.start(), _end(found)) for found in _COMMAND.finditer(self.plain, begin)]


def is_wide(char: str) -> bool:
    """Whether a character takes two columns, as Chinese ones do."""
    return unicodedata.east_asian_width(char) in "WF"


def width(text: str) -> int:
    """Columns on a terminal; Chinese characters take two, combining signs and what `style` adds none."""
    text = SEQUENCE.sub("", text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # 10 ms of start-up, for texts alone that are not in ASCII.

    return cell_len(text)


def shortened(text: str, columns: int) -> str:
    """The beginning of a text, within so many columns."""
    if width(text) <= columns:
        return text
    end = len(text)
    while end and width(text[:end]) >= columns:
        end -= 1
    return f"{text[:end]}…"


def wrapped(line: str, columns: int, hang: int | None = None) -> list[str]:
    """The line in as many as it takes; further ones begin at `hang`, else where a gap of spaces lets a text begin."""
    text = _Text(line)
    if width(text.plain) <= columns:
        return [line]
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    units = text.units(indent)
    if indent > columns * _BESIDE and columns < NARROW:
        indent = 4
    stacked = 0
    if hang is None:
        hang, stacked = _hang(text.plain, units, indent, columns)
    widest = max((width(text.plain[one.begin : one.end]) for one in units), default=0)
    hang = min(hang, columns - widest) if widest <= columns else hang
    return _lines(text, units, columns, (indent, hang, stacked))


def _hang(text: str, units: Sequence[_Unit], indent: int, columns: int) -> tuple[int, int]:
    """Where further lines begin; and where the text is broken in any case to stand below its label, else 0."""
    gaps = [gap.end() for gap in _GAP.finditer(text, indent) if width(text[: gap.end()]) <= columns * _FAR]
    gaps = [gap for gap in gaps if not any(unit.begin < gap < unit.end for unit in units)]
    if not gaps:
        return indent if indent > 6 else indent + 2 if indent else 0, 0
    beside = width(text[: gaps[-1]])
    widest = max(width(text[unit.begin : unit.end]) for unit in units if unit.begin >= gaps[-1])
    if beside + widest <= columns and (beside <= columns * _BESIDE or columns >= NARROW):
        return beside, 0
    return indent + 4, gaps[-1]


def _lines(text: _Text, units: Sequence[_Unit], columns: int, places: tuple[int, int, int]) -> list[str]:
    indent, hang, stacked = places
    found: list[str] = []
    line, at, used = " " * indent, units[0].begin, indent
    for unit in _divided(text.plain, units, columns - hang):
        between, shown = text.part(at, unit.begin), text.part(unit.begin, unit.end)
        takes = width(shown)
        below = at < stacked <= unit.begin
        if line.strip() and (below or used + width(between) + takes > columns):
            found.append(line + between.strip(" "))
            line, between = " " * hang, ""
        if not line.strip() and width(line) + takes > columns:
            if unit.command and takes > columns:
                *full, shown = _continued(shown, columns, width(line))
                found += full
                line = between = ""
            else:
                line = " " * max(0, columns - takes)
        line += between + shown
        used, at = width(line), unit.end
    return [*found, line + text.part(at, len(text.plain)).rstrip(" ")]


def _continued(command: str, columns: int, hang: int) -> list[str]:
    """A command in several lines that are one to a shell."""
    lines, line = [], " " * hang
    for word in re.findall(rf"(?:{_WORD}|\S)+", command):
        if line.strip() and width(f"{line} {word} \\") > columns:
            lines.append(f"{line} \\")
            line = " " * (hang + 4)
        line += f" {word}" if line.strip() else word
    return [*lines, line]


def _divided(text: str, units: Sequence[_Unit], room: int) -> Iterator[_Unit]:
    """The units, those that are wider than a line in parts: `verl/workers/`, `rollout/`."""
    for unit in units:
        if unit.command or width(text[unit.begin : unit.end]) <= room:
            yield unit
        else:
            yield from (_Unit(*part.span()) for part in _PARTS.finditer(text, unit.begin, unit.end))


def _pieces(text: str, begin: int, commands: Sequence[tuple[int, int]]) -> Iterator[_Unit]:
    """Words, single Chinese characters, and commands whole."""
    for first, end in commands:
        yield from (_Unit(*one.span()) for one in _PIECE.finditer(text, begin, first))
        yield _Unit(first, end, command=True)
        begin = end
    yield from (_Unit(*one.span()) for one in _PIECE.finditer(text, begin))


def _end(found: re.Match[str]) -> int:
    """Where a command ends that stands in a sentence: `uky-patch apply, then`, `uky-patch status and`."""
    words = list(re.finditer(_WORD, found[0]))
    for number, word in enumerate(words):
        plain = word[0].isalpha() and word[0].islower()
        after_option = number and words[number - 1][0].startswith("-")
        if number > 1 and plain and not after_option and (_PROSE.fullmatch(word[0]) or number > 3):
            return found.start() + words[number - 1].end()
        if word[0][-1] in ".,;:)" and word[0].strip(".,;:)"):
            return found.start() + word.start() + len(word[0].rstrip(".,;:)"))
    return found.end()
