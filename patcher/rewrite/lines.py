"""Put lines in the place of lines: one hunk of a diff, in a text of any kind.

The hunk's lines must stand in the text once, markers left out. Where the text has drifted, fewer lines of context are
asked for, as `patch` does, and then a three-way merge is tried between the lines of context that are still there:

     timeout: 600           context, as the hunk has it
    -retries: 3             retries: 3   # was 2        somebody has changed the line: both changes meet, so no merge
    +retries: 5
     backoff: 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches

from patcher.rewrite.comments import same_but_for_comments
from patcher.rewrite.edits import Mark, ReplaceLines, TextEdit
from patcher.rewrite.hunk import Sides, sides
from patcher.rewrite.marker import foreign_record, line_markers, marker_pattern, split_lines
from patcher.rewrite.marking import Lines, marked
from patcher.rewrite.merging import differing, three_way
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Candidate,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)
from patcher.rewrite.source import parse

_TELLING = 3
"""Characters of a line that can tell a place. A guess: `)` and `},` stand anywhere."""
_FEWEST = 2
"""Lines of context on each side that a three-way merge needs. A guess: one line, such as `)`, stands anywhere."""


class _View:
    """The lines of a text without their markers. A comment with a marker may be an old line, which counts for none."""

    def __init__(self, text: str, word: str) -> None:
        self.all, _ = split_lines(text)
        pattern = marker_pattern(word)
        self.lines: list[str] = []
        self.kept: list[bool] = []
        """Of each line whether it is a comment with a marker: an old line, or a comment that a record has put there."""
        for line in self.all:
            marker = pattern.search(line) if word.casefold() in line.casefold() else None
            self.lines.append((line[: marker.start()] if marker else line).rstrip())
            self.kept.append(marker is not None and line.lstrip().startswith("#"))

    def find(self, wanted: Sequence[str]) -> list[tuple[int, ...]]:
        """Where these lines stand, one after the other: of each place, the index of each line."""
        lines = [line.rstrip() for line in wanted]
        starts = (index for index, line in enumerate(self.lines) if lines and line == lines[0])
        found = (self._from(start, lines) for start in starts)
        return [place for place in found if place]

    def _from(self, at: int, lines: Sequence[str]) -> tuple[int, ...]:
        place: list[int] = []
        for line in lines:
            while at < len(self.lines) and self.kept[at] and self.lines[at] != line:
                at += 1
            if at == len(self.lines) or self.lines[at] != line:
                return ()
            place.append(at)
            at += 1
        return tuple(place)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where lines stand, these lines, and those that come in their place."""

    place: tuple[int, ...]
    old: Sequence[str]
    new: Sequence[str]


def rewrite_hunk(text: str, edit: ReplaceLines, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """Make the hunk's change on a text."""
    hunk, view = sides(edit.hunk), _View(text, mark.word)
    there, done = view.find(hunk.old), view.find(hunk.new)
    # Lines that are only added have the others around them, and so have lines that are only removed: the longer counts.
    if len(hunk.new) > len(hunk.old):
        there = [one for one in there if not _within(one, done)]
    else:
        done = [one for one in done if not _within(one, there)]
    if len(there) > 1:
        return AnchorAmbiguous(1, tuple(one[0] + 1 for one in there))
    if there:
        return _made(text, view, _Found(there[0], hunk.old, hunk.new), edit, mark, may_touch)
    if done:
        return _already(view, done, hunk.head, mark.word)
    if (less := _with_less_context(view, hunk)) is not None:
        return _made(text, view, less, edit, mark, may_touch)
    # The hunk the other way round: where its new lines stand in fewer lines of context, somebody has made the change.
    if (less := _with_less_context(view, Sides(hunk.new, hunk.old, hunk.head, hunk.tail))) is not None:
        return _already(view, [less.place], 0, mark.word)
    if (merged := _merged(view, hunk)) is not None:
        return _made(text, view, merged, edit, mark, may_touch)
    return AnchorMissing(1, 0, _nearest(view, hunk))


def markers_of_hunk(text: str, edit: ReplaceLines, word: str) -> frozenset[int]:
    """The lines with a marker, from 1, among those that the hunk's lines are."""
    view = _View(text, word)
    lines = {line for place in view.find(sides(edit.hunk).new) for line in range(place[0], place[-1] + 1)}
    return frozenset(line + 1 for line in lines if line_markers(view.all[line], word))


def _within(one: tuple[int, ...], others: Sequence[tuple[int, ...]]) -> bool:
    return any(set(one) <= set(other) for other in others)


def _already(view: _View, places: Sequence[tuple[int, ...]], head: int, word: str) -> AlreadyDone:
    lines = {line for place in places for line in range(place[0], place[-1] + 1)}
    return AlreadyDone(
        tuple(place[min(head, len(place) - 1)] + 1 for place in places),
        any(line_markers(view.all[line], word) for line in lines),
    )


def _with_less_context(view: _View, hunk: Sides) -> _Found | None:
    """The hunk with fewer lines of context, from the outside in; None unless one place alone has them.

    One line of context stays: without any, the same line elsewhere would be taken for the one that somebody changed.
    """
    for less in range(1, max(hunk.head, hunk.tail) + 1):
        for head, tail in ((less, 0), (0, less), (less, less)):
            if head > hunk.head or tail > hunk.tail:
                continue
            old, new = hunk.old[head : len(hunk.old) - tail], hunk.new[head : len(hunk.new) - tail]
            context = [*hunk.old[head : hunk.head], *hunk.old[len(hunk.old) - hunk.tail : len(hunk.old) - tail]]
            if not any(len(line.strip()) > _TELLING for line in context):
                continue
            found = view.find(old)
            if found:
                return _Found(found[0], old, new) if len(found) == 1 else None
    return None


def _merged(view: _View, hunk: Sides) -> _Found | None:
    """What the three-way merge of the hunk and of what became of its lines gives, between lines of context."""
    if hunk.head < _FEWEST or hunk.tail < _FEWEST:
        return None
    tops = view.find(hunk.old[:_FEWEST])
    if len(tops) != 1:
        return None
    top = tops[0][0]
    ends = [end[-1] + 1 for end in view.find(hunk.old[-_FEWEST:]) if top < end[0] <= top + 3 * len(hunk.old)]
    if not ends:
        return None
    place = tuple(index for index in range(top, ends[0]) if not view.kept[index])
    here = [view.lines[index] for index in place]
    lines = three_way([line.rstrip() for line in hunk.old], here, hunk.new)
    return _Found(place, here, lines) if lines is not None and lines != here else None


def _nearest(view: _View, hunk: Sides) -> Candidate | None:
    gone = [line for line in hunk.old[hunk.head : len(hunk.old) - hunk.tail] if line.strip()] or list(hunk.old)
    close = get_close_matches(max(gone, key=len).strip(), [line.strip() for line in view.lines], 1, 0.6)
    if not close:
        return None
    index = next(i for i, line in enumerate(view.lines) if line.strip() == close[0])
    return Candidate(index + 1, close[0])


def _made(text: str, view: _View, found: _Found, edit: ReplaceLines, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """Put the new lines in; those that both sides have stay as the text has them, with their comments."""
    before, ends = split_lines(text)
    after = [*before]
    newline = next((end for end in ends if end), "\n")
    place = (*found.place, found.place[-1] + 1)
    old, new = ([line.rstrip() for line in lines] for lines in (found.old, found.new))
    # From the end on, so that the indexes before stay right. Lines that both sides have stay as they are written.
    for tag, i1, i2, j1, j2 in reversed(SequenceMatcher(None, old, new, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        first, last = (place[i1], place[i2 - 1] + 1) if i2 > i1 else (place[i1], place[i1])
        for line in range(first, last):
            if (other := foreign_record(view.all[line], mark, may_touch)) is not None:
                return Overlap(line + 1, other)
        after[first:last] = found.new[j1:j2]
        ends[first:last] = [newline] * (j2 - j1)
    made = "".join(line + (end or newline) for line, end in zip(after, ends, strict=True))
    return mark_text(text, made, edit, mark, may_touch)


def mark_text(text: str, made: str, edit: TextEdit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """The outcome of an edit that makes `made` of `text`. A text that ended without a newline goes on doing so."""
    outcome = _marked(text, made, edit, mark, may_touch)
    if isinstance(outcome, Rewritten) and text and not text.endswith(("\n", "\r")):
        newline = next((end for end in split_lines(text)[1] if end), "\n")
        return Rewritten(outcome.source.removesuffix(newline), outcome.lines)
    return outcome


def _marked(text: str, made: str, edit: TextEdit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """The new text with its lines marked, where a comment can stand behind them."""
    if mark.style == "unmarked":
        return Rewritten(made, _differing(split_lines(text)[0], split_lines(made)[0]))
    if edit.file.endswith((".py", ".pyi")):
        sides_of_file = _python_lines(text), _python_lines(made)
        for side in sides_of_file:
            if isinstance(side, Unparseable):
                return side
        before, after = sides_of_file
    else:
        before, after = Lines.of_text(text), Lines.of_text(made)
    assert isinstance(before, Lines)
    assert isinstance(after, Lines)
    newline = next((end for end in before.ends if end), "\n")
    for way in (mark, replace(mark, style="clean")):
        result = marked(before, after, newline, way, may_touch)
        if isinstance(result, Overlap):
            return Overlap(result.line + 1, result.record)
        whole = "".join(result[0])
        if edit.file.endswith((".py", ".pyi")) or same_but_for_comments(edit.file, made, whole):
            return Rewritten(whole, tuple(place + 1 for place in result[1]))
    # A format without comments, such as JSON, or a place where a comment would be text: the line stays without a mark.
    return Rewritten(made, _differing(before.texts, after.texts))


def _differing(before: Sequence[str], after: Sequence[str]) -> tuple[int, ...]:
    """The lines of the new text, from 1, that are not as before; of lines that are gone, the one before them."""
    spans = (new for _, new in differing(before, after))
    return tuple(number + 1 for first, last in spans for number in range(min(first, max(last - 1, 0)), last or 1))


def _python_lines(text: str) -> Lines | Unparseable:
    code = parse(text)
    if isinstance(code, Unparseable):
        return code
    lines = Lines(code.trace)
    texts, ends = split_lines(text)
    if len(texts) != len(lines.texts):
        return Unparseable(1, "libcst does not give this file back as it is written")
    lines.texts, lines.ends = texts, ends
    return lines
