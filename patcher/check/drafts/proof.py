"""Does a drafted record do what it is for? Tried on the tree in memory and checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patcher.analysis.model import Finding
from patcher.check.drafts.model import Ground
from patcher.check.pair import check_pair
from patcher.plan.replay import Replayed, Workspace
from patcher.records.model import Record
from patcher.rewrite.outcome import AlreadyDone, Overlap, Rewritten


@dataclass(frozen=True, slots=True)
class Proven:
    """The files' texts after the record, and the findings that are gone with it."""

    texts: Mapping[str, str]
    gone: tuple[Finding, ...]


@dataclass(slots=True, eq=False)
class Prover:
    """Tries records on one tree."""

    ground: Ground
    _checked: dict[tuple[str, ...], tuple[tuple[Finding, ...], Counter[str]]] = field(default_factory=dict)

    def prove(self, record: Record, wanted: Sequence[Finding]) -> Proven | None:
        """None unless the record applies, every finding in `wanted` is gone, none is new and a second run is idle."""
        texts = {file: text for file in record.files if (text := self.ground.text(file)) is not None}
        made = replayed(record, texts, self.ground.word)
        if made is None:
            return None
        if not is_idle(record, made, self.ground.word):
            return None
        files = tuple(sorted(texts))
        if files not in self._checked:
            self._checked[files] = self._check(files, {})
        findings, unresolved = self._checked[files]
        after, unresolved_after = self._check(files, made)
        left = _counted(after)
        before = _counted(findings)
        gone = before - left
        if left - before or _concerned(record, wanted) & set(unresolved_after - unresolved):
            return None
        if any(gone[_identity(finding)] == 0 for finding in wanted):
            return None
        return Proven(made, tuple(finding for finding in findings if gone[_identity(finding)] > 0))

    def _check(self, files: tuple[str, ...], texts: Mapping[str, str]) -> tuple[tuple[Finding, ...], Counter[str]]:
        ground = self.ground
        forest = ground.forest.with_texts(texts)
        report = check_pair(forest, ground.target, verl=ground.verl, baseline=ground.baseline, files=files)
        return report.findings, Counter(one.symbol for one in report.unresolved)


def _concerned(record: Record, wanted: Sequence[Finding]) -> set[str]:
    """The symbols that the record is about. They must be decided after it; what hangs on them may be undecidable."""
    return {symbol.partition("(")[0] for symbol in (*record.when.has, *(finding.symbol for finding in wanted))}


def replayed(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str] = frozenset()
) -> dict[str, str] | None:
    """The texts with the record's edits; None unless every one of them is made."""
    desk, done = _replay(record, texts, word, may_touch)
    if not done.made or not all(isinstance(result.outcome, Rewritten) for result in done.results):
        return None
    return dict(desk.texts)


def is_idle(record: Record, texts: Mapping[str, str], word: str) -> bool:
    """Whether the record finds its work done."""
    desk, done = _replay(record, texts, word, frozenset())
    return desk.texts == texts and all(isinstance(result.outcome, AlreadyDone) for result in done.results)


def in_the_way(record: Record, texts: Mapping[str, str], word: str) -> str | None:
    """The record whose marked line the edits stand on, if that is what keeps them from being made."""
    _, done = _replay(record, texts, word, frozenset())
    return next((result.outcome.record for result in done.results if isinstance(result.outcome, Overlap)), None)


def _replay(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str]
) -> tuple[Workspace, Replayed]:
    desk = Workspace.of(texts, {}, word, "comment")
    return desk, desk.replay(record, lambda _edit: True, may_touch)


def _identity(finding: Finding) -> tuple[tuple[str, str, str, str], str]:
    return finding.key, finding.severity


def _counted(findings: Sequence[Finding]) -> Counter[tuple[tuple[str, str, str, str], str]]:
    return Counter(map(_identity, findings))
