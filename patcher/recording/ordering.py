"""The order of the records: one in which each applies on the base, and all of them together give the fork's files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from patcher.i18n import Phrase, phrase
from patcher.plan.inputs import belongs
from patcher.plan.own_imports import AbsentName, TreeLookup
from patcher.plan.replay import Replayed, Rewriting, Workspace, predecessors
from patcher.recording.needs import brings, in_fork, reachable
from patcher.recording.proof import applied, with_hunks
from patcher.recording.proposal import Files, Left, Proposal, Recorded, line_of
from patcher.records.load import in_order
from patcher.rewrite.outcome import AnchorAmbiguous, AnchorMissing, Overlap, Rewritten
from patcher.rewrite.texts import same, without_ids

Failure = tuple[Recorded, Replayed]
After = dict[str, dict[str, None]]
"""Of records those that each is to come after."""


def proven(
    records: list[Recorded], proposal: Proposal, word: str, rewriting: Rewriting, tree_has: TreeLookup
) -> tuple[list[Recorded], list[Left]]:
    """The records that apply on the base one after the other, as `apply` orders them, and together give the fork."""
    ordering = _Ordering(proposal, word, rewriting, tree_has)
    left: list[Left] = []
    while True:
        records, more, texts = ordering.ordered(records)
        left += more
        wrong = {file for file, text in texts.items() if not ordering.gives_fork(file, text, records)}
        gone = {one.record.id for one in records if wrong & set(one.record.files)}
        if not gone:
            return records, left
        after = ordering.of_pairs(records, wrong)
        if after:
            records = [_after(one, after.get(one.record.id, ())) for one in records]
            continue
        why = phrase("all records together do not give the fork's file")
        left += [Left(file, 0, why) for file in sorted(wrong)]
        records = _without(records, gone)  # What is left of them is proven anew: a record may have been needed.


@dataclass
class _Ordering:
    """Looks for an order of the records, by trying. What it has found out about two records is kept in `_pairs`."""

    proposal: Proposal
    word: str
    rewriting: Rewriting
    tree_has: TreeLookup
    _pairs: dict[tuple[str, str, str], str | None] = field(default_factory=dict)

    def ordered(self, records: list[Recorded]) -> tuple[list[Recorded], list[Left], Mapping[str, str]]:
        """The records in an order in which each applies, what no order lets apply, and the texts that they give."""
        left: list[Left] = []
        texts: Mapping[str, str] = {}
        for _ in range(4 * len(records) + 1):
            failures, texts = self._failures(records)
            if not failures:
                break
            after = self._after(records, failures)
            if after:
                # One that is made later than before goes to the end, so that those it waits for do not pass it again.
                records = sorted(records, key=lambda one: one.record.id in after)
                records = [_after(one, after.get(one.record.id, ())) for one in records]
                continue
            failed, done = failures[0]
            why = _why_left(failed, done, self.proposal.files)
            left += [Left(one.file, line_of(one, self.proposal.files, self.word), why) for one in failed.pieces]
            records = _without(records, {failed.record.id})
        return records, left, texts

    def gives_fork(self, file: str, text: str, records: Iterable[Recorded]) -> bool:
        """Whether a text is the file with the changes that are recorded."""
        return same(text, _expected(file, self.proposal.files, records), file)

    def of_pairs(self, records: Sequence[Recorded], names: Collection[str]) -> After:
        """Which records of some files come after which, where only one order of the two gives the fork's text."""
        follows = _follows(records, self.proposal)
        found: After = defaultdict(dict)
        for file in sorted(names):
            for one, two in combinations([one for one in records if file in one.record.files], 2):
                self._note(one, two, file, follows, found)
        return found

    def _failures(self, records: Sequence[Recorded]) -> tuple[list[Failure], Mapping[str, str]]:
        """Make the records, with those that the fork has already, in the order in which `apply` makes them.

        Returns those that do not make all of their edits, with what came of each, and the texts without markers."""
        by_id = {one.record.id: one for one in records}
        proposal = self.proposal
        workspace = Workspace(proposal.files.base, self.word, "clean", tree_has=self.tree_has, rewriting=self.rewriting)
        ordered = in_order([*(one.record for one in records), *proposal.known])
        earlier = predecessors(ordered)
        decide = belongs(proposal.base.verl)
        failures: list[Failure] = []
        for record in ordered:
            done = workspace.replay(replace(record, style=None), decide, earlier[record.id])
            made = done.made and all(isinstance(one.outcome, Rewritten) for one in done.results)
            if record.id in by_id and not made:
                failures.append((by_id[record.id], done))
        return failures, {file: without_ids(text, self.word) for file, text in workspace.texts.items()}

    def _after(self, records: Sequence[Recorded], failures: Sequence[Failure]) -> After:
        """Which records are to come after which, so that those that failed may apply."""
        follows = _follows(records, self.proposal)
        failed_ids = {failed.record.id for failed, _ in failures}
        found: After = defaultdict(dict)
        for index, (failed, done) in enumerate(failures):
            needed = _needed_before(failed, done, records, self.proposal.files)
            for file in () if needed else sorted(_without_place(done)):
                for one in records:
                    if one is not failed and file in one.record.files:
                        self._note(failed, one, file, follows, found)
            if index and (not needed or not failed_ids.isdisjoint(needed)):
                continue  # It may have failed for one before it that failed.
            mine = set(failed.record.files)
            for name in needed or [one.id for one in self.proposal.known if mine & set(one.files)]:
                _add(name, failed.record.id, follows, found)
        return found

    def _note(self, one: Recorded, two: Recorded, file: str, follows: Mapping[str, set[str]], found: After) -> None:
        """Add to `found` which of two records of a file comes after the other."""
        first = self._first(one, two, file)
        if first is not None:
            _add(first, two.record.id if first == one.record.id else one.record.id, follows, found)

    def _first(self, one: Recorded, two: Recorded, file: str) -> str | None:
        """The one of two records that is to be made first; None where both orders give the fork's text, or none does.

        `import c` goes behind the lines `import a` and `import b`; the other record puts `import d` between them.
        """
        key = (one.record.id, two.record.id, file)
        if key not in self._pairs:
            files = self.proposal.files
            base, expected = files.base.get(file), _expected(file, files, (one, two))
            edits = [[edit for edit in each.record.edits if edit.file == file] for each in (one, two)]
            texts = [applied(base, [*edits[0], *edits[1]]), applied(base, [*edits[1], *edits[0]])]
            good = [text is not None and same(text, expected, file) for text in texts]
            self._pairs[key] = None if good[0] == good[1] else one.record.id if good[0] else two.record.id
        return self._pairs[key]


def _expected(file: str, files: Files, kept: Iterable[Recorded]) -> str:
    """The file with the changes that are recorded."""
    hunks = [piece.made.hunk for one in kept for piece in one.pieces if piece.file == file]
    return with_hunks(files.before[file], files.after[file], hunks)


def _follows(records: Iterable[Recorded], proposal: Proposal) -> dict[str, set[str]]:
    return {one.id: set(one.after) for one in (*(one.record for one in records), *proposal.known)}


def _add(first: str, later: str, follows: Mapping[str, set[str]], found: After) -> None:
    """Note that `later` comes after `first`, unless it does already, or `first` comes after it."""
    # Two that need each other have no order.
    before_first = reachable(first, lambda name: follows.get(name, set()))
    if first not in follows.get(later, ()) and later not in before_first:
        follows[later].add(first)
        found[later][first] = None


def _after(one: Recorded, names: Iterable[str]) -> Recorded:
    return replace(one, record=replace(one.record, after=(*one.record.after, *names)))


def _without(records: Iterable[Recorded], gone: Collection[str]) -> list[Recorded]:
    """The records without some, which none of the others comes after any more."""
    kept = (one for one in records if one.record.id not in gone)
    return [
        replace(one, record=replace(one.record, after=tuple(name for name in one.record.after if name not in gone)))
        for one in kept
    ]


def _without_place(done: Replayed) -> set[str]:
    """The files in which an edit did not find its place."""
    return {one.edit.file for one in done.results if isinstance(one.outcome, AnchorMissing | AnchorAmbiguous)}


def _needed_before(failed: Recorded, done: Replayed, records: Iterable[Recorded], files: Files) -> list[str]:
    """The records after which one is to come: whose lines it edits, or whose function it imports."""
    found: dict[str, None] = {}
    for result in done.results:
        if isinstance(result.outcome, Overlap):
            return [result.outcome.record]
        if isinstance(result.outcome, AbsentName):
            name = result.outcome.name
            bringing = (one for one in records if any(brings(piece, name, files) for piece in one.pieces))
            found |= dict.fromkeys(one.record.id for one in bringing if one.record is not failed.record)
    return list(found)


def _why_left(failed: Recorded, done: Replayed, files: Files) -> Phrase:
    for result in done.results:
        if isinstance(result.outcome, AbsentName):
            name = result.outcome.name
            if not in_fork(name, files):
                if not result.outcome.imported:
                    return phrase("it uses {names}, which the fork does not have either", names=name)
                return phrase("it imports {names}, which the fork does not have either", names=name)
            if not any(brings(piece, name, files) for piece in failed.pieces):
                return phrase("it needs {names}, which come with a change that is left", names=name)
    return phrase("its edits do not find their places beside those of other records")
