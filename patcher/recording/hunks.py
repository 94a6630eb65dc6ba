"""Two texts of a file -> what differs, as whole statements of one block.

A line that differs may be one of a call of ten. What a record can name is the statement around it, and the block that
this is in, on both sides:

    base                            fork
    def launch(self):               def launch(self):
        start(                          start(                  one hunk: the statement start(...),
            port=1,                         port=2,             in the body of launch
        )                               )
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import reduce

import libcst as cst
from libcst import CSTNode

from patcher.rewrite.marker import split
from patcher.rewrite.merging import common_ends, differing
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import BLOCKS, SCOPES, STATEMENTS, equal, index_of

Lines = tuple[int, int]
"""Lines of a text from the first up to before the last, counted from 0."""


_ANEW = 2
"""Changes of one function from which on it may have been written anew. A guess."""
_KEPT = 0.5
"""The share of its lines that such a function keeps at most: difflib's ratio. A guess."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of the base, and the fork's in their place. One of the two may be none."""

    old: Lines
    new: Lines

    @property
    def sides(self) -> tuple[Lines, Lines]:
        return self.old, self.new


@dataclass(frozen=True, slots=True)
class Run:
    """Lines of a block's statements that follow one another: `block.body[first:last]`."""

    block: cst.Module | cst.IndentedBlock
    first: int
    last: int

    @property
    def items(self) -> Sequence[CSTNode]:
        return self.block.body[self.first : self.last]


@dataclass(frozen=True, slots=True)
class Change:
    """A hunk as statements. Of an insertion `old` is empty, of a removal `new` is."""

    hunk: Hunk
    old: Run
    new: Run
    within: str | None
    """The class or function that both are in, as a record names it."""
    sources: tuple[Source, Source] = field(repr=False, compare=False)
    """The texts that the statements are of: read again, they would be others."""

    @property
    def comments_alone(self) -> bool:
        """Whether all statements are the same."""
        old, new = self.old.items, self.new.items
        return len(old) == len(new) and all(map(equal, old, new))


def line_hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """Where the lines of two texts differ."""
    return [Hunk(*spans) for spans in differing(before, after)]


def hunk_of(one: Hunk | Change) -> Hunk:
    """The lines of a change."""
    return one.hunk if isinstance(one, Change) else one


def changes(base: Source, fork: Source) -> list[Hunk | Change]:
    """What differs, in order. What is no statement of one block on both sides, such as a comment, stays a hunk."""
    return _Comparison(base, fork).changes()


def whole_functions(base: Source, fork: Source, found: Sequence[Hunk | Change]) -> list[Hunk | Change]:
    """The same changes, those of a function that was written anew as one."""
    counted = Counter(one.within for one in found if isinstance(one, Change) and one.within is not None)
    made: list[Hunk | Change] = list(found)
    for name in (name for name, count in counted.items() if count >= _ANEW):
        old, new = (code.within(name) for code in (base, fork))
        if len(old) != 1 or len(new) != 1 or not all(isinstance(one[0], cst.FunctionDef) for one in (old, new)):
            continue
        before = [line.strip() for line in split(base.code(old[0])) if line.strip()]
        after = [line.strip() for line in split(fork.code(new[0])) if line.strip()]
        if SequenceMatcher(None, before, after, autojunk=False).ratio() >= _KEPT:
            continue
        runs = _run(base, old[0]), _run(fork, new[0])
        whole = Hunk(lines_of(base, runs[0]), lines_of(fork, runs[1]))
        inside = [one for one in made if _overlap(hunk_of(one), whole)]
        if all(_inside(hunk_of(one), whole) for one in inside):
            above = name.rpartition(".")[0] or None
            at = made.index(inside[0])
            made = [one for one in made if one not in inside]
            made.insert(at, Change(whole, runs[0], runs[1], above, (base, fork)))
    return made


def _run(code: Source, statement: CSTNode) -> Run:
    block = code.parents[id(statement)]
    assert isinstance(block, BLOCKS)
    index = index_of(block.body, statement)
    return Run(block, index, index + 1)


def _inside(one: Hunk, other: Hunk) -> bool:
    return all(b[0] <= a[0] and a[1] <= b[1] for a, b in ((one.old, other.old), (one.new, other.new)))


class _Comparison:
    """Two texts, and the lines in which they differ. A side is 0 for the base and 1 for the fork."""

    def __init__(self, base: Source, fork: Source) -> None:
        self.sources = base, fork
        self.lines = split(base.text), split(fork.text)
        self.hunks = [self._slid(hunk) for hunk in line_hunks(*self.lines)]

    def changes(self) -> list[Hunk | Change]:
        done: list[Hunk | Change] = []
        for hunk in self.hunks:
            covered = hunk_of(done[-1]) if done else None
            if covered is not None and covered.old[1] >= hunk.old[1] and covered.new[1] >= hunk.new[1]:
                continue  # A change before this one has grown over it.
            found = self._grown(hunk)
            # One that has grown backwards takes in what it covers now.
            while done and _overlap(hunk_of(done[-1]), hunk_of(found)):
                found = self._grown(joined(hunk_of(done.pop()), hunk_of(found)))
            done.append(found)
        return done

    def _slid(self, hunk: Hunk) -> Hunk:
        """An insertion or a removal, moved to where its lines are whole statements.

        Of `a`, `b`, `a` both `a, b` and `b, a` can be what was inserted before the last `a`.
        """
        (i1, i2), (j1, j2) = hunk.old, hunk.new
        if i1 != i2 and j1 != j2:
            return hunk
        side = 1 if i1 == i2 else 0
        code, lines, (first, last) = self.sources[side], self.lines[side], hunk.sides[side]
        ways = [0]
        step = 0
        while first + step > 0 and lines[first + step - 1] == lines[last + step - 1]:
            step -= 1
            ways.append(step)
        step = 0
        while last + step < len(lines) and lines[first + step] == lines[last + step]:
            step += 1
            ways.append(step)
        for way in ways:
            run = covering(code, (first + way, last + way))
            if run is not None and lines_of(code, run) == (first + way, last + way):
                return Hunk((i1 + way, i2 + way), (j1 + way, j2 + way))
        return hunk

    def _grown(self, hunk: Hunk) -> Hunk | Change:
        """The hunk with the rest of the statements that its lines are part of; a mere hunk where some are in none."""
        for _ in range(50):  # Each round grows it by a line at least; blocks do not nest deeper.
            runs: list[Run | None] = []
            wider = hunk
            for side, code in enumerate(self.sources):
                lines = hunk.sides[side]
                run = covering(code, lines) if lines[0] < lines[1] else None
                if run is None and lines[0] < lines[1]:
                    return hunk
                runs.append(run)
                wider = wider if run is None else joined(wider, self._on_both(lines_of(code, run), side))
            if wider == hunk:
                change = self._change(hunk, *runs)
                if change is not None:
                    return change
                above = self._parent(*runs)
                if above is None:
                    return hunk
                wider = joined(hunk, above)
            hunk = wider
        return hunk

    def _change(self, hunk: Hunk, old: Run | None, new: Run | None) -> Change | None:
        if old is None:
            assert new is not None
            old = self._beside(new, 1, hunk.old[0])
        elif new is None:
            new = self._beside(old, 0, hunk.new[0])
        if old is None or new is None:
            return None
        old, new = self._trimmed(old, new)
        base, fork = self.sources
        if self._path(base, old.block) != self._path(fork, new.block):
            return None
        return Change(hunk, old, new, base.qualified_name(old.block) or None, self.sources)

    def _trimmed(self, old: Run, new: Run) -> tuple[Run, Run]:
        """Both without the statements at their ends that are the same."""
        base, fork = self.sources
        first, last = common_ends(
            [_written(base, one) for one in old.items], [_written(fork, one) for one in new.items]
        )
        return Run(old.block, old.first + first, old.last - last), Run(new.block, new.first + first, new.last - last)

    @staticmethod
    def _path(code: Source, block: CSTNode) -> list[tuple[str, str]]:
        """The classes, functions and other blocks around a block."""
        around = (node for node in (block, *code.ancestors(block)) if isinstance(node, cst.BaseCompoundStatement))
        return [(type(node).__name__, node.name.value if isinstance(node, SCOPES) else "") for node in around]

    def _beside(self, run: Run, side: int, line: int) -> Run | None:
        """Where, on the other side, a run stands that is on one side alone: behind or before the same neighbour.

        `line`: the line of the other side, from 0, before which the run would stand there.
        """
        code, other = self.sources[side], self.sources[1 - side]
        for index, behind in ((run.first - 1, True), (run.last, False)):
            if not 0 <= index < len(run.block.body):
                continue
            first, last = lines_of(code, Run(run.block, index, index + 1))
            there = (self._line(first, side), self._line(last - 1, side))
            if there[0] is None or there[1] is None or there[1] - there[0] != last - 1 - first:
                continue
            found = covering(other, (there[0], there[1] + 1))
            if found is not None and found.last - found.first == 1:
                place = found.last if behind else found.first
                return Run(found.block, place, place)
        return self._at(line, run, code, other)

    @staticmethod
    def _at(line: int, run: Run, code: Source, other: Source) -> Run | None:
        """The same by the line before which it stands there, where both neighbours differ too:

        def load(path): ...                 def load(path, strict): ...
                                            def save(path): ...
        """
        above = code.parents.get(id(run.block))
        block: object = None
        if isinstance(run.block, cst.Module):
            block = other.module
        elif isinstance(above, SCOPES) and len(found := other.within(code.qualified_name(above))) == 1:
            block = getattr(found[0], "body", None)
        if not isinstance(block, BLOCKS):
            return None
        ends = [lines_of(other, Run(block, place, place + 1)) for place in range(len(block.body))]
        place = sum(end <= line for _, end in ends)
        is_between = all(first >= line for first, _ in ends[place:])
        return Run(block, place, place) if is_between else None

    def _parent(self, old: Run | None, new: Run | None) -> Hunk | None:
        """The statements around the blocks of both runs."""
        found: list[Hunk] = []
        for side, run in enumerate((old, new)):
            if run is None or isinstance(run.block, cst.Module):
                continue
            code = self.sources[side]
            # The block of an `elif` is part of the whole `if`.
            above = code.whole_lines(next(node for node in code.ancestors(run.block) if isinstance(node, STATEMENTS)))
            found.append(self._on_both(lines_of(code, _run(code, above)), side))
        return reduce(joined, found) if found else None

    # Lines of one side as lines of the other

    def _on_both(self, lines: Lines, side: int) -> Hunk:
        """Lines of one side, and those of the other that they are or that stand in their place."""
        first = self._boundary(lines[0], side, start=True)
        last = self._boundary(lines[1], side, start=False)
        return Hunk((first[0], last[0]), (first[1], last[1]))

    def _boundary(self, line: int, side: int, *, start: bool) -> tuple[int, int]:
        """The boundary before a line of one side, on both sides; inside a hunk, the hunk's own.

        `start`: whether lines begin there, or end. What the other side has inserted just there is not among them.
        """
        shift = 0
        for hunk in self.hunks:
            mine, other = hunk.sides[side], hunk.sides[1 - side]
            if mine[1] < line or (mine[1] == line and (start or mine[0] < line)):
                shift = other[1] - mine[1]
            elif mine[0] < line:
                edge = 0 if start else 1
                return hunk.old[edge], hunk.new[edge]
            else:
                break
        return (line, line + shift) if side == 0 else (line + shift, line)

    def _line(self, line: int, side: int) -> int | None:
        """The line of the other side that a line of `side` is; None where it has none."""
        shift = 0
        for hunk in self.hunks:
            mine, other = hunk.sides[side], hunk.sides[1 - side]
            if mine[1] <= line:
                shift = other[1] - mine[1]
            elif mine[0] <= line:
                return None
            else:
                break
        return line + shift


def joined(one: Hunk, two: Hunk) -> Hunk:
    """The lines from the first of the two to the last, with all between them."""
    return Hunk(
        (min(one.old[0], two.old[0]), max(one.old[1], two.old[1])),
        (min(one.new[0], two.new[0]), max(one.new[1], two.new[1])),
    )


def _overlap(one: Hunk, two: Hunk) -> bool:
    """Whether a hunk reaches into one that begins behind it."""
    return one.old[1] > two.old[0] or one.new[1] > two.new[0]


def _written(code: Source, item: CSTNode) -> list[str]:
    """A statement's lines, blank ones left out."""
    start, end = code.span(item)
    return [line.rstrip() for line in split(code.text[start:end]) if line.strip()]


def lines_of(code: Source, run: Run) -> Lines:
    """The lines of a run: with the comments and blank lines above its first statement."""
    start, end = code.spans[id(run.items[0])][0], code.spans[id(run.items[-1])][1]
    return bisect_right(code.starts, start) - 1, bisect_left(code.starts, end)


def covering(code: Source, lines: Lines) -> Run | None:
    """The fewest statements of one block that the lines are in; None where some are in none, such as a last comment."""
    block: cst.Module | cst.IndentedBlock = code.module
    found: Run | None = None
    while True:
        inside = [
            index
            for index in range(len(block.body))
            if (here := lines_of(code, Run(block, index, index + 1)))[0] < lines[1] and here[1] > lines[0]
        ]
        if not inside:
            return found
        run = Run(block, inside[0], inside[-1] + 1)
        first, last = lines_of(code, run)
        if lines[0] < first or lines[1] > last:
            return found
        found = run
        inner = next((one for one in _blocks(block.body[inside[0]]) if _holds(code, one, lines)), None)
        if len(inside) > 1 or inner is None:
            return found
        block = inner


def _holds(code: Source, block: cst.IndentedBlock, lines: Lines) -> bool:
    first, last = lines_of(code, Run(block, 0, len(block.body))) if block.body else (0, 0)
    return first <= lines[0] and lines[1] <= last


def _blocks(statement: CSTNode) -> Iterator[cst.IndentedBlock]:
    """The blocks right inside a compound statement, those of its `elif`, `else` and handlers too."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        below = getattr(statement, name, None)
        if isinstance(below, cst.IndentedBlock):
            yield below
        elif isinstance(below, (list, tuple)) and name != "body":
            for one in below:
                yield from _blocks(one)
        elif isinstance(below, (cst.If, cst.Else, cst.Finally)):
            yield from _blocks(below)
