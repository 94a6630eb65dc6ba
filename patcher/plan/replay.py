"""Make the edits of records on texts in memory, one record after another: all of a record's edits, or none.

Before a record is tried, its `[resolved]` patterns are looked for: where one matches, upstream's own fix is there. An
edit that would import from verl what the tree does not have is held back (`AbsentName`), and the rest tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from patcher.plan.own_imports import AbsentName, TreeLookup, absent_name, bound, in_package, may_be_in, module_files
from patcher.records.model import Record
from patcher.rewrite import create_file, markers, matches, rewrite
from patcher.rewrite.edits import CreateFile, Edit, Mark, MarkStyle
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    OtherFile,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)

if TYPE_CHECKING:
    from difflib import Match


@dataclass(frozen=True, slots=True)
class Missing:
    """The edit's file is not in the tree."""


@dataclass(frozen=True, slots=True)
class EditResult:
    """What came of one edit of a record."""

    edit: Edit
    outcome: Outcome | Missing | AbsentName
    certain: bool
    """False: the tree's version does not tell whether this edit belongs to it, so a missing anchor is no failure."""
    resolved: bool = False
    """The file has what the record's `[resolved]` looks for, so the edit was not tried."""
    unused: bool = False
    """The tree provably has nothing left that the edit is about, so a missing anchor is no failure."""
    file_taken_out: bool = False
    """The fork has no such file, and another edit of the same kind has its place: no failure either, and it is told."""

    @property
    def landed(self) -> bool:
        return isinstance(self.outcome, Rewritten)

    @property
    def settled(self) -> bool:
        return isinstance(self.outcome, Rewritten | AlreadyDone)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A record's edits on the texts: all landed or already there, or none made."""

    results: tuple[EditResult, ...]
    made: bool

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.edit.file for result in self.results if result.landed))


Unused = Callable[[str, Edit, Iterable[str]], bool]
"""Whether a text, and every file but some, provably has nothing of what an edit is about."""
EditFilter = Callable[[Edit], bool | None]
"""Whether an edit belongs to the tree's release: yes, no, or None for not decidable."""
Rewriting = Callable[[str, Edit, Mark, frozenset[str]], Outcome]
"""What comes of an edit on a text: `rewritten`, or what another process has worked out already."""


@lru_cache(maxsize=1024)
def rewritten(source: str, edit: Edit, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """The same edit on the same text is asked for again when one tree is held against many releases."""
    return rewrite(source, edit, mark, may_touch=may_touch)


class Workspace:
    """Texts that records are replayed on, one record after another, and who changed each."""

    def __init__(
        self,
        texts: Mapping[str, str],
        word: str,
        style: MarkStyle,
        *,
        problems: Mapping[str, Unparseable] = MappingProxyType({}),
        shown: Mapping[str, str] | None = None,
        unused: Unused | None = None,
        tree_has: TreeLookup | None = None,
        rewriting: Rewriting = rewritten,
    ) -> None:
        """`texts` by path; `problems`: files that are there and no text; `word` and `style`: how lines are marked.

        `shown`: the texts as people have them before them, if these are others; lines are given as lines of these.
        """
        self.texts = dict(texts)
        self.order: dict[str, list[str]] = {}
        """By file, the records that have changed it, in order."""
        self.steps: list[tuple[str, Mapping[str, str]]] = []
        """Each record that was made, with its files' texts right after it."""
        self.problems = problems
        self._word, self._style, self._rewriting = word, style, rewriting
        self._shown = texts if shown is None else shown
        self._unused: Unused = unused or (lambda _text, _edit, _but: False)
        self._tree_has = tree_has

    def replay(self, record: Record, belongs: EditFilter, may_touch: frozenset[str] = frozenset()) -> Replayed:
        """Make the record's edits on the workspace, or none of them."""
        mark = Mark(record.id, self._word, record.style or self._style)
        before = {file: self.texts[file] for file in record.files if file in self.texts}
        fixed = {
            file: self._as_shown(done, file, text)
            for file, text in before.items()
            if (done := _resolved(text, record, self._word))
        }
        concerned = [(edit, certain) for edit in record.edits if (certain := belongs(edit)) is not False]
        absent: dict[Edit, AbsentName] = {}
        while True:
            kept = tuple(
                EditResult(
                    edit,
                    absent.get(edit) or fixed.get(edit.file) or self._edit(edit, mark, may_touch),
                    certain is True,
                    edit.file in fixed,
                )
                for edit, certain in concerned
            )
            more = self._absent(kept)
            if not more:
                break
            absent |= more
            self._put_back(before, record.files)
        kept = _with_a_place([self._judged_by_use(result, before, record.files) for result in kept])
        made = all(result.settled or excused(result) for result in kept) and any(result.landed for result in kept)
        if made:
            files = dict.fromkeys(result.edit.file for result in kept if result.landed)
            for file in files:
                self.order.setdefault(file, []).append(record.id)
            self.steps.append((record.id, {file: self.texts[file] for file in files}))
        else:
            self._put_back(before, record.files)
        return Replayed(kept, made)

    def _put_back(self, before: Mapping[str, str], files: Iterable[str]) -> None:
        """Take out what a record made in some files."""
        for file in files:
            self.texts.pop(file, None)
        self.texts.update(before)

    def _judged_by_use(self, result: EditResult, texts: Mapping[str, str], files: Iterable[str]) -> EditResult:
        text = texts.get(result.edit.file)
        missing = isinstance(result.outcome, AnchorMissing) and not result.outcome.found
        if text is None or not missing or not result.certain:
            return result
        return replace(result, unused=self._unused(text, result.edit, files))

    def _edit(self, edit: Edit, mark: Mark, may_touch: frozenset[str]) -> Outcome | Missing:
        source = self.texts.get(edit.file)
        if source is None and isinstance(edit, CreateFile):
            if edit.file in self.problems:  # Something is there: a file of another encoding, or no text.
                return OtherFile(1)
            made = create_file(edit, mark)
            self.texts[edit.file] = made.source
            return made
        if source is None:
            return self.problems.get(edit.file, Missing())
        outcome = self._rewriting(source, edit, mark, may_touch | {mark.record})
        if isinstance(outcome, Rewritten):
            self.texts[edit.file] = outcome.source
        # What is done stands in the file that people see too, so its lines are found there, and need not be mapped.
        shown = self._shown.get(edit.file)
        if isinstance(outcome, AlreadyDone) and shown is not None and shown != source:
            again = self._rewriting(shown, edit, mark, may_touch | {mark.record})
            if isinstance(again, AlreadyDone):
                return replace(again, marked=outcome.marked)
        return self._as_shown(outcome, edit.file, source)

    def _absent(self, results: Iterable[EditResult]) -> dict[Edit, AbsentName]:
        """The edits that would import or use what the tree lacks, unless a record before, or this one, gives it."""
        lookup = self._tree_has
        if lookup is None:
            return {}
        landed = [(one.edit, one.outcome) for one in results if isinstance(one.outcome, Rewritten)]
        made = {*self.order, *(edit.file for edit, _ in landed)}

        def has(name: str) -> bool | None:
            known = lookup(name)
            if known is not False:
                return known
            texts = (self.texts[file] for file in module_files(name) if file in made)
            # `from verl.flags import log` may be about a module of that package.
            inner = any(file in made for file in module_files(f"{name}."))
            last = name.rpartition(".")[2]
            passed_on = (file for file in made if in_package(file, name) and last in (bound(self.texts[file]) or ()))
            return inner or any(may_be_in(bound(text), last) for text in texts) or any(passed_on)

        found = ((edit, absent_name(outcome.source, _new_lines(edit, outcome), has)) for edit, outcome in landed)
        return {edit: absent for edit, absent in found if absent is not None}

    def _as_shown(self, outcome: Outcome, file: str, text: str) -> Outcome:
        """The outcome with its lines as lines of the file that is there."""
        return on_base(outcome, self._shown.get(file, text), text)


def _with_a_place(results: Sequence[EditResult]) -> tuple[EditResult, ...]:
    """The results without edits of every place that have none in this fork, where another of their kind has.

    The same where the fork has taken the whole file out, as one without Megatron has. One of another kind says nothing:
    it may need what this one brings.
    """
    settled = {type(result.edit) for result in results if result.settled}

    def is_passed_over(result: EditResult) -> bool:
        missing = isinstance(result.outcome, AnchorMissing | Missing) and not result.unused
        return missing and result.edit.count is None and type(result.edit) in settled

    def told(result: EditResult) -> EditResult:
        gone = isinstance(result.outcome, Missing) and type(result.edit) in settled
        return replace(result, file_taken_out=True) if gone else result

    return tuple(told(result) for result in results if not is_passed_over(result))


def _new_lines(edit: Edit, outcome: Rewritten) -> Iterable[int]:
    """The lines that an edit has written; `lines` of a file that was made is where it begins."""
    return range(1, len(outcome.source.splitlines()) + 1) if isinstance(edit, CreateFile) else outcome.lines


_matches = lru_cache(maxsize=1024)(matches)


def predecessors(records: Iterable[Record]) -> dict[str, frozenset[str]]:
    """For each record, all that its `after` leads to. `records` must be ordered so that those come first."""
    found: dict[str, frozenset[str]] = {}
    for record in records:
        found[record.id] = frozenset(record.after).union(*(found.get(name, frozenset()) for name in record.after))
    return found


def _resolved(text: str, record: Record, word: str) -> AlreadyDone | None:
    """Where the text has what `[resolved]` looks for, and whether a marker stands there."""
    lines = tuple(line for pattern in record.resolved for line in _matches(text, pattern))
    if not lines:
        return None
    marked = {marker.line for marker in markers(text, word)}
    # A hand's marker may stand in a comment above its fix, `# Uky: why`: up to three lines above, which is a guess.
    return AlreadyDone(lines, any(line - above in marked for line in lines for above in range(4)))


def excused(result: EditResult) -> bool:
    """Whether an edit that found no anchor is for another release than the tree's, or for what the fork has not."""
    return (
        result.unused
        or result.file_taken_out
        or (not result.certain and isinstance(result.outcome, AnchorMissing | Missing | AbsentName))
    )


def on_base(outcome: Outcome, base: str, changed: str) -> Outcome:
    """The outcome of an edit on `changed`, its lines counted in `base`. What was rewritten counts in the new text."""
    if base == changed:
        return outcome
    match outcome:
        case AlreadyDone(lines, marked):
            return AlreadyDone(_mapped(lines, base, changed), marked)
        case AnchorAmbiguous(expected, lines):
            return AnchorAmbiguous(expected, _mapped(lines, base, changed))
        case AnchorMissing(_, _, nearest) if nearest is not None:
            return replace(outcome, nearest=replace(nearest, line=_mapped((nearest.line,), base, changed)[0]))
        case Overlap(line=line) | OtherFile(line=line) | Unparseable(line=line):
            return replace(outcome, line=_mapped((line,), base, changed)[0])
        case AnchorMissing() | Rewritten():
            return outcome


def _mapped(lines: tuple[int, ...], base: str, changed: str) -> tuple[int, ...]:
    return tuple(on_other(line, changed, base) for line in lines)


def on_other(line: int, text: str, other: str) -> int:
    """The line of `other` that a line of `text` is; for a new one, the one whose place it takes."""
    blocks = _blocks(text, other)
    block = max((block for block in blocks if block.a < line), key=lambda block: block.a, default=None)
    if block is None:
        return 1
    return min(block.b + min(line - block.a, block.size + 1), max(1, len(other.splitlines())))


@lru_cache(maxsize=32)
def _blocks(text: str, other: str) -> list[Match]:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, text.splitlines(), other.splitlines(), autojunk=False).get_matching_blocks()
