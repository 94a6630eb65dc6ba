"""Which record repairs which finding: told by checking again what the records make of the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TypeAlias

from patcher.analysis.model import Finding, Report

Texts: TypeAlias = Mapping[str, str]
Step: TypeAlias = tuple[str, Texts]
"""A record's id, and the texts of the files that it changes, right after it."""
Recheck: TypeAlias = Callable[[Texts, Collection[str]], Report]
"""Check some files of the tree again, with other texts in the place of its own."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """The report with `repaired_by`, what is left once all steps are made, and what single records bring in."""

    before: Report
    after: Report
    introduced: tuple[tuple[str, Finding], ...] = ()


def attribute(
    report: Report, now: Texts, base: Texts, steps: Sequence[Step], final: Texts, recheck: Recheck, glance: Recheck
) -> Repairs:
    """Check `final` again, and lay each finding that is gone, or new, to the step that made the difference.

    `now` are the texts that the report is about, `base` those that the first step starts from (others where records
    are applied already), `final` those after the last. `glance` is a cheaper check, which tells of severities only
    whether the use is guarded where it stands.
    """
    if not final:
        return Repairs(report, report)
    files = sorted({*final, *(one.file for one in report.findings if _is_source(one.file))})
    again = recheck(final, files)
    walk = _Walk(now, base, steps, glance)
    concerned = [one for one in report.findings if _is_source(one.file)]
    gone = _difference(concerned, again.findings, now, final)
    new = _difference(again.findings, concerned, final, now)
    culprits = walk.blame(gone, concerned)
    found = tuple(replace(one, repaired_by=culprits.get(number)) for number, one in _numbered(report.findings, gone))
    return Repairs(
        replace(report, findings=found),
        _merged(report, again, files),
        tuple((culprit, finding) for finding in new if (culprit := walk.source(finding))),
    )


def _is_source(file: str) -> bool:
    """Whether a file is of those that records edit; scripts and settings are not."""
    return file.endswith(".py") and file.startswith("verl/")


def _numbered(findings: Sequence[Finding], gone: Sequence[Finding]) -> list[tuple[int, Finding]]:
    """Each finding with its place among those that are gone, -1 for one that stays."""
    places = {id(finding): number for number, finding in enumerate(gone)}
    return [(places.get(id(finding), -1), finding) for finding in findings]


def _merged(report: Report, again: Report, files: Collection[str]) -> Report:
    """The report with what was found again in `files` in the place of what it had there."""
    findings = [finding for finding in report.findings if finding.file not in files] + list(again.findings)
    unresolved = [one for one in report.unresolved if one.file not in files] + list(again.unresolved)
    return replace(
        report,
        findings=tuple(sorted(findings, key=lambda one: (one.file, one.line))),
        unresolved=tuple(sorted(unresolved, key=lambda one: (one.file, one.line))),
    )


def _difference(findings: Sequence[Finding], others: Sequence[Finding], texts: Texts, there: Texts) -> list[Finding]:
    """Those of `findings`, in `texts`, that `others`, found in `there`, lack.

    One that is guarded among the others counts as lacking, unless it was. Of several alike, those stay whose lines do.
    """
    left = list(others)

    def counterpart(one: Finding, line: int | None) -> Finding | None:
        for other in left:
            alike = other.key == one.key and (other.severity != "guarded" or one.severity == "guarded")
            if alike and (line is None or other.line == line):
                return other
        return None

    def without(those: Sequence[Finding], *, by_line: bool) -> list[Finding]:
        lacking = []
        for one in those:
            before, after = texts.get(one.file, ""), there.get(one.file, "")
            line = _standing(before, after).get(one.line, 0) if by_line else None
            other = counterpart(one, line)
            if other is None:
                lacking.append(one)
            else:
                left.remove(other)
        return lacking

    return without(without(findings, by_line=True), by_line=False)


class _Walk:
    """The states between the steps."""

    def __init__(self, now: Texts, base: Texts, steps: Sequence[Step], glance: Recheck) -> None:
        self.now, self.base, self.steps, self.glance = now, base, steps, glance
        self._seen: dict[tuple[int, str], tuple[Finding, ...]] = {}

    def blame(self, gone: Sequence[Finding], findings: Iterable[Finding]) -> dict[int, str]:
        """The record whose step took each of these away, by the finding's place in `gone`; `findings` were all."""
        found: dict[int, str] = {}
        alike = Counter(one.key for one in findings)
        for number, finding in enumerate(gone):
            at = self._by_line(finding)
            at = self._by_check(finding, alike[finding.key]) if at is None else at
            if at is not None:
                found[number] = self.steps[at][0]
        return found

    def source(self, new: Finding) -> str:
        """The record whose step brought a finding in; "" where no single one did."""
        for number in self._editing(new.file) or range(len(self.steps)):
            if new.key in {one.key for one in self._findings(number, new.file)}:
                return self.steps[number][0]
        return ""

    def _by_line(self, finding: Finding) -> int | None:
        """The step that changes the finding's line, if what it puts there stays to the end."""
        text, lines, found = self.base.get(finding.file, ""), {finding.line}, None
        if text != self.now.get(finding.file):
            return None
        for number in self._editing(finding.file):
            after = self.steps[number][1][finding.file]
            there = _standing(text, after)
            moved = {there[line] for line in lines if line in there}
            if len(moved) < len(lines):
                if found is not None:
                    return None
                found, moved = number, _instead(text, after, finding_line=next(iter(lines)))
            text, lines = after, moved
        return found

    def _by_check(self, finding: Finding, alike: int) -> int | None:
        """The first step after which not all findings like this one are there, and stay away."""
        steps = self._editing(finding.file) or list(range(len(self.steps)))
        if len(steps) == 1:
            return steps[0]
        last = None
        for number in reversed(steps):
            live = finding.severity != "guarded"
            shown = [one for one in self._findings(number, finding.file) if not live or one.severity != "guarded"]
            if sum(one.key == finding.key for one in shown) >= alike:
                break
            last = number
        return last

    def _editing(self, file: str) -> list[int]:
        return [number for number, (_, texts) in enumerate(self.steps) if file in texts]

    def _findings(self, number: int, file: str) -> tuple[Finding, ...]:
        """What one file shows right after a step."""
        if (number, file) not in self._seen:
            texts = dict(self.base)
            for _, changed in self.steps[: number + 1]:
                texts.update(changed)
            self._seen[number, file] = self.glance(texts, (file,)).findings
        return self._seen[number, file]


@lru_cache(maxsize=256)
def _matches(before: str, after: str) -> tuple[tuple[int, int, int], ...]:
    old, new = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return tuple((block.a, block.b, block.size) for block in blocks)


@lru_cache(maxsize=256)
def _standing(before: str, after: str) -> Mapping[int, int]:
    """Where each line that stays as it is has gone; lines count from 1."""
    return {old + at + 1: new + at + 1 for old, new, size in _matches(before, after) for at in range(size)}


def _instead(before: str, after: str, *, finding_line: int) -> set[int]:
    """The lines that stand where a line was that is gone."""
    blocks = _matches(before, after)
    start = max((new + size for old, new, size in blocks if old < finding_line), default=0)
    end = min((new for old, new, _ in blocks if old >= finding_line), default=start)
    return set(range(start + 1, end + 1))
