"""What `check` says about labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from bench.accuracy.labels import PACKAGES, WORKS_WITH, Label, labels, releases
from patcher.analysis.findings import Finding, Report, Unresolved
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair
from patcher.check.targets import Against, Located, Released, newest_release
from patcher.packages.releases import sources

Said = Literal["broken", "unresolved", "silent"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A label with what a tool says about it."""

    label: Label
    said: Said


def pairs(packages: Iterable[str] = PACKAGES) -> list[tuple[str, str, str]]:
    """(verl, package, version) of all that is labelled, so that a package's sources are read once."""
    return [(verl, package, version) for package in packages for version in releases(package) for verl in WORKS_WITH]


class Checker:
    """Runs `check` on pairs; a tree and the last release's symbols are kept."""

    def __init__(self) -> None:
        self._trees: dict[str, Project] = {}
        self._last: tuple[tuple[str, str], Symbols] | None = None

    def report(self, verl: str, package: str, version: str) -> Report:
        if verl not in self._trees:
            self._trees[verl] = Project(sources("verl", verl))
        if self._last is None or self._last[0] != (package, version):
            folder = sources(package, version) / package
            symbols = Symbols(folder)
            released = Located(Against(package, Released(version)), version, folder)
            symbols.newest = cache(partial(newest_release, released))
            self._last = ((package, version), symbols)
        target = Target({package: version}, {package: self._last[1]}, {package: version})
        return check_pair(self._trees[verl], target, verl=verl)

    def judged(self, verl: str, package: str, version: str) -> list[Judged]:
        report = self.report(verl, package, version)
        return judged(list(labels(verl, package, version)), report.findings, report.unresolved)


def judged(given: Sequence[Label], findings: Sequence[Finding], unresolved: Sequence[Unresolved]) -> list[Judged]:
    """Each label with what a report says about it; a label counts once, whatever stands at its place besides."""
    found: dict[tuple[str, int], list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.file, finding.line].append(finding)
    open_: dict[tuple[str, int], list[str]] = defaultdict(list)
    for each in unresolved:
        open_[each.file, each.line].append(each.symbol)
    keywords: dict[tuple[str, int], set[str]] = defaultdict(set)
    for label in given:
        if label.kind == "keyword":
            keywords[label.file, label.lines[-1]].add(label.name)
    return [Judged(label, _said(label, found, open_, keywords[label.file, label.lines[-1]])) for label in given]


def _said(
    label: Label,
    found: dict[tuple[str, int], list[Finding]],
    unresolved: dict[tuple[str, int], list[str]],
    keywords: set[str],
) -> Said:
    for line in label.lines:
        if any(_about(label, finding, keywords) for finding in found.get((label.file, line), ())):
            return "broken"
    symbols = [symbol for line in label.lines for symbol in unresolved.get((label.file, line), ())]
    owner = label.symbol.partition("(")[0].rpartition(".")[2] if label.kind == "keyword" else label.name
    return "unresolved" if owner in {symbol.partition("(")[0].rpartition(".")[2] for symbol in symbols} else "silent"


def _about(label: Label, finding: Finding, keywords: set[str]) -> bool:
    """Whether a finding on a label's line is about what the label is about."""
    parameter = finding.symbol.partition("(")[2].removesuffix(")")
    match label.kind:
        case "import":
            gone = finding.kind.startswith(("module", "symbol"))
            return gone and (finding.symbol == label.symbol or label.symbol.startswith(finding.symbol + "."))
        case "attribute":
            gone = finding.kind.startswith(("module", "symbol", "attribute"))
            return gone and finding.symbol.rpartition(".")[2] == label.name
        case "keyword":
            return finding.kind.startswith("argument") and parameter == label.name
        case "positional":
            return finding.kind.startswith("argument") and parameter not in keywords
        case "override":
            return finding.kind == "override-mismatch"


def judged_all(processes: int) -> list[Judged]:
    """All labels. Pairs on one release of a package are judged by one process."""
    groups = [(package, version) for package in PACKAGES for version in releases(package)]
    with ProcessPoolExecutor(processes) as pool:
        return [each for group in pool.map(_group, groups) for each in group]


def _group(release: tuple[str, str]) -> list[Judged]:
    global _CHECKER
    _CHECKER = _CHECKER or Checker()
    return [each for verl in WORKS_WITH for each in _CHECKER.judged(verl, *release)]


_CHECKER: Checker | None = None
