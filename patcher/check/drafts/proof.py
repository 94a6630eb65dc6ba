"""Does a drafted record do what it is for? Tried on the tree in memory, checked again, and shown by an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from patcher.analysis.findings import Finding
from patcher.check.drafts.inputs import DraftInputs
from patcher.check.pair import check_pair
from patcher.plan.replay import Replayed, Workspace
from patcher.records.model import Record
from patcher.rewrite.outcome import AlreadyDone, Overlap, Rewritten

_Identity: TypeAlias = tuple[tuple[str, str, str, str], str]
"""File, function, kind and symbol of a finding, and its severity."""


@dataclass(slots=True, eq=False)
class Prover:
    """Tries records on one tree."""

    inputs: DraftInputs
    _checked: dict[tuple[str, ...], tuple[tuple[Finding, ...], Counter[str]]] = field(default_factory=dict)

    def prove(self, record: Record, wanted: Sequence[Finding]) -> tuple[Finding, ...] | None:
        """The findings that are gone with the record.

        None unless it applies, every finding in `wanted` is gone, none is new and a second run is idle.

        An optional use that a failing import has hidden is not new: it is told once the import works.
        """
        texts = {file: text for file in record.files if (text := self.inputs.text(file)) is not None}
        made = replayed(record, texts, self.inputs.word)
        # A record that edits its own result would edit it again at every run.
        if made is None or not _is_idle(record, made, self.inputs.word):
            return None
        files = tuple(sorted(texts))
        if files not in self._checked:
            self._checked[files] = self._check(files, {})
        findings, unresolved = self._checked[files]
        after, unresolved_after = self._check(files, made)
        left = _counted(after)
        before = _counted(findings)
        gone = before - left
        # A new finding, or a use that could be decided before and cannot now.
        new = [one for one in left - before if not _was_hidden(one, record, wanted)]
        if new or _concerned(record, wanted) & set(unresolved_after - unresolved):
            return None
        if any(gone[_identity(finding)] == 0 for finding in wanted):
            return None
        return tuple(finding for finding in findings if gone[_identity(finding)] > 0)

    def _check(self, files: tuple[str, ...], texts: Mapping[str, str]) -> tuple[tuple[Finding, ...], Counter[str]]:
        inputs = self.inputs
        project = inputs.project.with_texts(texts)
        report = check_pair(project, inputs.target, verl=inputs.verl, baseline=inputs.baseline, files=files)
        return report.findings, Counter(one.symbol for one in report.unresolved)


def _concerned(record: Record, wanted: Sequence[Finding]) -> set[str]:
    """The symbols that the record is about. They must be decided after it; what hangs on them may be undecidable."""
    return {symbol.partition("(")[0] for symbol in (*record.when.has, *(finding.symbol for finding in wanted))}


def _was_hidden(one: _Identity, record: Record, wanted: Sequence[Finding]) -> bool:
    """Whether a finding is an optional use, in the same file, of what could not be imported before."""
    (file, _, _, symbol), severity = one
    broke = any(other.severity == "break" and other.file == file for other in wanted)
    return severity == "optional" and broke and symbol.startswith(tuple(f"{name}." for name in record.when.has))


def replayed(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str] = frozenset()
) -> dict[str, str] | None:
    """The texts with the record's edits; None unless every one of them is made."""
    workspace, done = _replay(record, texts, word, may_touch)
    if not done.made or not all(isinstance(result.outcome, Rewritten) for result in done.results):
        return None
    return dict(workspace.texts)


def with_drafts(
    records: Iterable[Record], patched: Mapping[str, str], text_of: Callable[[str], str | None], word: str
) -> dict[str, str]:
    """The texts of the files that drafts change, over those that records have changed. `text_of`: any other file's."""
    texts = dict(patched)
    for record in records:
        now = {file: texts.get(file) or text_of(file) or "" for file in record.files}
        texts |= replayed(record, now, word, frozenset(record.after)) or {}
    return texts


def _is_idle(record: Record, texts: Mapping[str, str], word: str) -> bool:
    """Whether the record finds its work done."""
    workspace, done = _replay(record, texts, word, frozenset())
    return workspace.texts == texts and all(isinstance(result.outcome, AlreadyDone) for result in done.results)


def conflicting_record(record: Record, texts: Mapping[str, str], word: str) -> str | None:
    """The record whose marked line the edits stand on, if that is what keeps them from being made."""
    _, done = _replay(record, texts, word, frozenset())
    return next((result.outcome.record for result in done.results if isinstance(result.outcome, Overlap)), None)


def _replay(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str]
) -> tuple[Workspace, Replayed]:
    workspace = Workspace(texts, word, "comment")
    return workspace, workspace.replay(record, lambda _edit: True, may_touch)


def _identity(finding: Finding) -> _Identity:
    return finding.key, finding.severity


def _counted(findings: Sequence[Finding]) -> Counter[_Identity]:
    return Counter(map(_identity, findings))
