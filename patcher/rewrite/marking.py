"""Put the pieces of an edit into the text, each changed line marked, the old lines kept above as comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from patcher.rewrite.code import EOL, Code
from patcher.rewrite.marker import line_markers, marker_pattern
from patcher.rewrite.outcome import Overlap
from patcher.rewrite.shape import Shape, shape

if TYPE_CHECKING:
    from patcher.rewrite.edits import Mark


@dataclass(frozen=True, slots=True)
class Splice:
    """Text that takes the place of what stands between two offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A whole new text, the lines that the edit made, and where each region of old lines went."""

    text: str
    lines: tuple[int, ...]
    shifts: tuple[tuple[int, int], ...]
    """Pairs of a line of the old text and how much further down the lines from it on stand now."""

    def moved(self, line: int) -> int:
        """Where a line of the old text, untouched by the edit, stands now."""
        return line + max((shift for shift in self.shifts if shift[0] <= line), default=(0, 0))[1]


@dataclass(slots=True)
class _Change:
    """Old lines and the new ones in their place, by index; `whole`: told at the level of logical lines."""

    old: tuple[int, int]
    new: tuple[int, int]
    whole: bool = False
    changed: set[int] = field(default_factory=set)


def _place(splice: Splice) -> tuple[int, int]:
    return splice.start, splice.end


def splice_text(text: str, splices: Iterable[Splice], start: int = 0, end: int | None = None) -> str:
    """The text between two offsets, with what falls into it spliced in."""
    end = len(text) if end is None else end
    parts = []
    for splice in sorted(splices, key=_place):
        parts += [text[start : splice.start], splice.text]
        start = splice.end
    return "".join([*parts, text[start:end]])


def overlapping(splices: Iterable[Splice]) -> bool:
    ordered = sorted(splices, key=_place)
    return any(one.end > two.start for one, two in pairwise(ordered))


def mark_up(code: Code, splices: Sequence[Splice], mark: Mark, may_touch: frozenset[str]) -> Marked | Overlap:
    """Make the splices and mark what they changed."""
    result: list[str] = []
    made: list[int] = []
    shifts: list[tuple[int, int]] = []
    done, line = 0, 1
    for (first, last), inside in _regions(code, splices):
        start, end = code.line_start(first), code.line_start(last + 1)
        line += first - done - 1
        result.append(code.text[code.line_start(done + 1) : start])
        new = splice_text(code.text, inside, start, end)
        region = _region(code, (first, last), new, mark, may_touch)
        if isinstance(region, Overlap):
            return region
        lines, touched = region
        result += lines
        made += [line + index for index in touched]
        line += len(lines)
        done = last
        shifts.append((last + 1, line - last - 1))
    result.append(code.text[code.line_start(done + 1) :])
    return Marked("".join(result), tuple(made), tuple(shifts))


def _regions(code: Code, splices: Sequence[Splice]) -> list[tuple[tuple[int, int], list[Splice]]]:
    """Runs of complete logical lines, as line numbers, each with the splices that fall into it."""
    starts, total = code.logical_starts, len(code.starts)
    regions: list[tuple[tuple[int, int], list[Splice]]] = []
    for splice in sorted(splices, key=_place):
        top = code.line_of(splice.start)
        bottom = code.line_of(max(splice.start, splice.end - 1))
        first = max(start for start in starts if start <= top)
        last = min((start - 1 for start in starts if start > bottom), default=total)
        if regions and regions[-1][0][1] >= first:
            (begun, ended), inside = regions[-1]
            regions[-1] = ((begun, max(ended, last)), [*inside, splice])
        else:
            regions.append(((first, last), [splice]))
    return regions


def _split(text: str) -> tuple[list[str], list[str]]:
    """The lines of a text and their ends; no last line where the text ends in a newline."""
    lines, ends = EOL.split(text), EOL.findall(text)
    return (lines[:-1], ends) if lines[-1] == "" else (lines, [*ends, ""])


def _region(
    code: Code, span: tuple[int, int], text: str, mark: Mark, may_touch: frozenset[str]
) -> tuple[list[str], list[int]] | Overlap:
    """The marked lines of one region, and the indexes of those that the edit made."""
    old, _ = _split(code.text[code.line_start(span[0]) : code.line_start(span[1] + 1)])
    new, ends = _split(text)
    changes = _changes(old, new)
    for change in changes:
        for index in range(*change.old):
            for record in line_markers(old[index], mark.word):
                if record is not None and record != mark.record and record not in may_touch:
                    return Overlap(span[0] + index, record)
    before, after = shape(old), shape(new)
    changes = _widen(changes, before, after, new)
    lines: list[str] = []
    made: list[int] = []

    def put(line: str, end: str) -> None:
        lines.append(line + (end or code.newline))

    done = 0
    for change in changes:
        for index in range(done, change.new[0]):
            put(new[index], ends[index])
        marks = sorted({found for index in range(*change.old) for found in _others(old[index], mark)})
        kept = 0
        if mark.style == "comment":
            for index in range(*change.old):
                if old[index].strip() and not _own(old[index], mark):
                    put(_commented(old[index], mark), code.newline)
                    kept += 1
        for index in range(*change.new):
            if not change.changed or index in change.changed:
                made.append(len(lines))
            if _wants(change, index, after, new):
                put(_marked(new[index], mark, marks), ends[index])
            else:
                put(new[index], ends[index])
        if change.new[0] == change.new[1]:
            made += range(len(lines) - kept, len(lines)) if kept else [max(len(lines) - 1, 0)]
        done = change.new[1]
    for index in range(done, len(new)):
        put(new[index], ends[index])
    if span[1] == len(code.starts) and code.text and not EOL.search(code.text[-1]) and lines:
        lines[-1] = lines[-1].rstrip("\r\n")
    if shape([line.rstrip("\r\n") for line in lines]).tokens != after.tokens:
        raise AssertionError(f"marking the lines from {span[0]} would change what they mean")
    return lines, made


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        _Change((i1 + head, i2 + head), (j1 + head, j2 + head))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    ]


def _widen(changes: list[_Change], before: Shape, after: Shape, new: Sequence[str]) -> list[_Change]:
    """Tell a change at the level of whole logical lines where comments cannot stand beside its own lines."""
    widened: list[_Change] = []
    for change in changes:
        (i1, i2), (j1, j2) = change.old, change.new
        changed = set(range(j1, j2))
        clean = all(after.behind[index] for index in changed) and (j1 == len(new) or after.above[j1] or j1 == 0)
        if i1 == i2 or clean:
            extra = _Change(change.old, change.new, False, changed)
        else:
            top = after.logical[min(j1, len(new) - 1)][0]
            bottom = after.logical[max(j1, j2 - 1) if j1 < len(new) else len(new) - 1][1] + 1
            extra = _Change((before.logical[i1][0], before.logical[i2 - 1][1] + 1), (top, bottom), True, changed)
        last = widened[-1] if widened else None
        if last and (last.old[1] > extra.old[0] or last.new[1] > extra.new[0]):
            last.old = (min(last.old[0], extra.old[0]), max(last.old[1], extra.old[1]))
            last.new = (min(last.new[0], extra.new[0]), max(last.new[1], extra.new[1]))
            last.whole = True
            last.changed |= extra.changed
        else:
            widened.append(extra)
    return widened


def _wants(change: _Change, index: int, after: Shape, new: Sequence[str]) -> bool:
    """Whether a new line is to carry the marker."""
    if not after.behind[index] or not new[index].strip():
        return False
    if index in change.changed:
        return True
    first, last = after.logical[index]
    return (index == last and any(first <= changed <= last for changed in change.changed)) or (
        change.whole and index == last and not change.changed
    )


def _own(line: str, mark: Mark) -> bool:
    return mark.record in line_markers(line, mark.word)


def _others(line: str, mark: Mark) -> list[str]:
    return [record for record in line_markers(line, mark.word) if record is not None and record != mark.record]


def _commented(line: str, mark: Mark) -> str:
    body = line.lstrip(" \t\f")
    return _marked(f"{line[: len(line) - len(body)]}# {body}", mark, _others(line, mark))


def _marked(line: str, mark: Mark, records: Sequence[str]) -> str:
    """The line with the marker behind it, told together with those of other records that worked on it."""
    line = line.rstrip(" \t\f")
    last = None
    for last in marker_pattern(mark.word).finditer(line):  # noqa: B007
        pass
    here = line_markers(last[0], mark.word) if last and last.end() == len(line) else []
    ids = [record for record in here if record is not None]
    if last and ids:
        line = line[: last.start()].rstrip(" \t\f")
    ids += [record for record in (*records, mark.record) if record not in ids]
    text = f"# {mark.word}[{', '.join(ids)}]"
    return f"{line}  {text}" if line.strip() else f"{line}{text}"
