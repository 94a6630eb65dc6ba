"""Mark the lines that an edit has changed with a comment, and keep the old lines above them as comments.

    limit = 5                   # limit = 5  # Uky[fork-limit]      in the style `comment`; `clean` keeps no old line
                                limit = 8  # Uky[fork-limit]

A comment cannot stand everywhere: not behind a `\\`, and not inside a string of several lines. Where one cannot stand
beside the changed lines, the whole logical line around them is kept as comments, and marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from patcher.rewrite.marker import foreign_record, line_markers, marker_pattern, split_lines
from patcher.rewrite.merging import differing
from patcher.rewrite.outcome import Overlap

if TYPE_CHECKING:
    from patcher.rewrite.edits import Mark
    from patcher.rewrite.source import Trace


@dataclass(slots=True)
class _Change:
    """Old lines and the new ones in their place, by index; `whole`: compared at the level of logical lines."""

    old: tuple[int, int]
    new: tuple[int, int]
    whole: bool = False
    changed: set[int] = field(default_factory=set)


class Lines:
    """The lines of some statements, and where comments may stand between and behind them."""

    @classmethod
    def of_text(cls, text: str) -> Lines:
        """The lines of a text that is no Python: a comment may stand behind each of them."""
        lines = cls.__new__(cls)
        lines.texts, lines.ends = split_lines(text)
        lines.behind = [True] * len(lines.texts)
        lines.logical = [(index, index) for index in range(len(lines.texts))]
        return lines

    def __init__(self, trace: Trace) -> None:
        self.texts, self.ends = split_lines(trace.text)
        self.behind: list[bool] = []
        self.logical: list[tuple[int, int]] = []
        at = first = 0
        for index, (text, end) in enumerate(zip(self.texts, self.ends, strict=True)):
            self.behind.append(at + len(text) in trace.free or not end)
            if at + len(text) in trace.closing or not end:
                self.logical += [(first, index)] * (index + 1 - first)
                first = index + 1
            at += len(text) + len(end)

    def keep(self, before: Lines, text: str) -> bool:
        """Give the lines that are as before, and `before` itself, the text that they have in the file.

        libcst has dropped white space from it where the two are not the same. False: it has dropped whole lines.
        """
        texts, ends = split_lines(text)
        if texts == before.texts:
            return True
        if len(texts) != len(before.texts) or any(
            "".join(one.split()) != "".join(two.split()) for one, two in zip(texts, before.texts, strict=True)
        ):
            return False
        for i, j, count in SequenceMatcher(None, before.texts, self.texts, autojunk=False).get_matching_blocks():
            self.texts[j : j + count], self.ends[j : j + count] = texts[i : i + count], ends[i : i + count]
        before.texts, before.ends = texts, ends
        return True

    def above(self, index: int) -> bool:
        return index == 0 or self.behind[index - 1]


def marked(
    before: Lines, after: Lines, newline: str, mark: Mark, may_touch: frozenset[str]
) -> tuple[list[str], list[int]] | Overlap:
    """The new lines marked, and the indexes of those that the edit made. An overlap's line is an index too."""
    old, new = before.texts, after.texts
    changes = [_Change(*spans) for spans in differing(old, new)]
    for change in changes:
        for index in range(*change.old):
            if (other := foreign_record(old[index], mark, may_touch)) is not None:
                return Overlap(index, other)
    lines: list[str] = []
    made: list[int] = []
    done = 0
    for change in _widen(changes, before, after):
        lines += [new[index] + after.ends[index] for index in range(done, change.new[0])]
        # Records that had marked the old lines have worked on the new ones too: `# Uky[first, second]`.
        others = sorted({found for index in range(*change.old) for found in _others(old[index], mark)})
        kept = [
            line
            for line in old[slice(*change.old)]
            if mark.style == "comment" and line.strip() and mark.record not in line_markers(line, mark.word)
        ]
        lines += [_commented(line, mark) + newline for line in kept]
        for index in range(*change.new):
            if not change.changed or index in change.changed:
                made.append(len(lines))
            wanted = mark.style != "unmarked" and _wants(change, index, after)
            text = _marked(new[index], mark, others) if wanted else new[index]
            lines.append(text + (after.ends[index] or newline))
        if (
            change.new[0] == change.new[1]
        ):  # Only taken out: the place is where the old lines are kept, or the line before.
            made += range(len(lines) - len(kept), len(lines)) if kept else [max(len(lines) - 1, 0)]
        done = change.new[1]
    return [*lines, *(new[index] + after.ends[index] for index in range(done, len(new)))], made


def _widen(changes: list[_Change], before: Lines, after: Lines) -> list[_Change]:
    """Widen a change to whole logical lines where comments cannot stand beside its own lines.

    value = first + \\
        second              no comment can stand between these two, so both are kept as comments above the new ones
    """
    widened: list[_Change] = []
    count = len(after.texts)
    for change in changes:
        (i1, i2), (j1, j2) = change.old, change.new
        changed = set(range(j1, j2))
        clean = all(after.behind[index] for index in changed) and (j1 == count or after.above(j1))
        if i1 == i2 or clean:
            extra = _Change(change.old, change.new, False, changed)
        else:
            top = after.logical[min(j1, count - 1)][0]
            bottom = after.logical[max(j1, j2 - 1) if j1 < count else count - 1][1] + 1
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


def _wants(change: _Change, index: int, after: Lines) -> bool:
    """Whether a new line is to carry the marker."""
    if not after.behind[index] or not after.texts[index].strip():
        return False
    if index in change.changed:
        return True
    first, last = after.logical[index]
    return (index == last and any(first <= changed <= last for changed in change.changed)) or (
        change.whole and index == last and not change.changed
    )


def _others(line: str, mark: Mark) -> list[str]:
    return [record for record in line_markers(line, mark.word) if record is not None and record != mark.record]


def _commented(line: str, mark: Mark) -> str:
    body = line.lstrip(" \t\f")
    return _marked(f"{line[: len(line) - len(body)]}# {body}", mark, _others(line, mark))


def _marked(line: str, mark: Mark, records: Sequence[str]) -> str:
    """The line with the marker behind it, combined with those of other records that worked on it."""
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
