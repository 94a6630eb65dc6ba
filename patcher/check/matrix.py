"""The matrix of verl releases and releases of a package: its cells, which releases are meant, and their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from patcher.analysis.findings import Finding, Report, Severity
from patcher.check.targets import module_of
from patcher.errors import ReleaseError, UsageError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.releases import sources

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from patcher.packages.releases import Progress
    from patcher.records.model import Record


@dataclass(frozen=True, slots=True)
class Works:
    """Nothing breaks as the releases are."""


@dataclass(frozen=True, slots=True)
class WorksWithRecords:
    """Nothing breaks once the records are applied; `records` are those that take a break away."""

    records: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Breaks:
    """`count` breaks stay when the records are applied."""

    count: int


State: TypeAlias = Works | WorksWithRecords | Breaks


@dataclass(frozen=True, slots=True)
class Cell:
    """One verl release on one release of the package."""

    verl: str
    release: str
    against: Mapping[str, str]
    uses: int
    unresolved: int
    findings: tuple[Finding, ...]
    """As the releases are, each with the record that takes it away."""
    left: int = 0
    """How many breaks stay with the records applied."""
    added: tuple[Finding, ...] = ()
    """Findings that only the records bring."""

    @property
    def breaks(self) -> int:
        return self.count("break")

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def state(self) -> State:
        # Breaks that stay with the records applied, whether the record brought them or not.
        if self.left:
            return Breaks(self.left)
        if not self.breaks:
            return Works()
        repairs = {finding.repaired_by for finding in self.findings if finding.severity == "break"}
        return WorksWithRecords(tuple(sorted(filter(None, repairs))))


@dataclass(frozen=True, slots=True)
class Missing:
    """A release whose sources cannot be had, and why."""

    release: str
    reason: Phrase | Phrases | str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows are releases of verl, columns those of `package`, oldest first; missing ones have no cells."""

    package: str
    """The distribution whose releases are the columns."""
    verl: tuple[str, ...]
    releases: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    missing_verl: Mapping[str, Missing] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    """Packages that are the same in every column, with their version."""

    def row(self, verl: str) -> tuple[Cell, ...]:
        return tuple(self.cells[verl, release] for release in self.releases if (verl, release) in self.cells)


def cell_of(release: str, as_is: Report, after: Report) -> Cell:
    """What a pair's two reports come to: as the releases are, and with the records applied."""
    known = {finding.key for finding in as_is.findings}
    return Cell(
        as_is.verl,
        release,
        dict(as_is.against),
        as_is.uses,
        len(as_is.unresolved),
        as_is.findings,
        len(after.of("break")),
        tuple(finding for finding in after.findings if finding.key not in known),
    )


def with_since(matrix: Matrix) -> Matrix:
    """The same cells with `since` in their findings: the first column of the run of columns that show the finding.

    None where the run begins at the first column, as what lies before it was not looked at.
    """
    cells = dict(matrix.cells)
    for verl in matrix.verl:
        running: dict[tuple[str, str, str, str], str | None] = {}
        for index, cell in enumerate(matrix.row(verl)):
            # A finding of the first column may be older than the column.
            first = cell.release if index else None
            # A finding that is gone in one column and comes again begins anew.
            running = {finding.key: running.get(finding.key, first) for finding in (*cell.findings, *cell.added)}
            cells[verl, cell.release] = replace(
                cell,
                findings=tuple(_since(finding, running[finding.key]) for finding in cell.findings),
                added=tuple(_since(finding, running[finding.key]) for finding in cell.added),
            )
    return replace(matrix, cells=cells)


def _since(finding: Finding, release: str | None) -> Finding:
    """The finding with `since`; itself where nothing changes: a matrix has 100,000 of them."""
    return finding if finding.since == release else replace(finding, since=release)


AT_ONCE = 4
"""Transfers at a time. A guess: an index is shared with others, and four transfers fill most connections."""


def fetch_sources(package: str, releases: Sequence[str], progress: Progress) -> dict[str, Path | Missing]:
    """The folder that holds the package, for each release in the order given, or why there is none."""
    found: dict[str, Path | Missing] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {pool.submit(_fetch, package, release): release for release in releases}
        try:
            for done in as_completed(asked):
                found[asked[done]] = done.result()
                fields = {"name": package, "done": len(found), "total": len(releases)}
                progress(phrase("sources of {name}: {done} of {total} {total:release|releases}", **fields), 0, None)
        except BaseException:
            # After Ctrl-C no further transfer begins.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress("", 0, None)
    return {release: found[release] for release in releases}


def _fetch(package: str, release: str) -> Path | Missing:
    try:
        folder = sources(package, release)
    except ReleaseError as error:
        return Missing(release, Phrases((error.title, error.cause)))
    module = folder / module_of(package)
    if not module.is_dir():
        return Missing(release, phrase("its files hold no package {name}", name=module.name))
    return module


FIRST = {"vllm": "0.9.0"}
"""The oldest release of a package that a matrix has a column for, unless told otherwise."""


def wanted_releases(package: str, specifier: str, known: Iterable[str]) -> tuple[str, ...]:
    """The final releases among `known` that the specifier takes, oldest first; pre-releases where it names one.

    Raises UsageError where it cannot be read or takes none.
    """
    from packaging.version import Version

    asked = _specifier(package, specifier)
    found = sorted(asked.filter(set(known), prereleases=asked.prereleases or False), key=Version)
    if not found:
        near = ", ".join(sorted(known, key=Version, reverse=True)[:4])
        raise UsageError(
            phrase("no release of {name} is in {spec}", name=package, spec=specifier),
            advice=phrase("The newest releases are {versions}.", versions=near),
        )
    return tuple(found)


def parse_against(texts: Sequence[str]) -> tuple[tuple[str, str], dict[str, str]]:
    """The package whose releases vary, with its specifier, and the packages that stay at one version.

    Raises UsageError where an item cannot be read, or where more than one package varies.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    varying: list[tuple[str, str]] = []
    fixed: dict[str, str] = {}
    for text in texts:
        try:
            asked = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                phrase("--against {item!r} cannot be read", item=text),
                advice=phrase('Write it as "vllm>=0.9" or transformers==4.57.6.'),
            ) from error
        pins = [part.version for part in asked.specifier if part.operator in ("==", "===") and "*" not in part.version]
        # `--against vllm>=0.9 --against transformers==4.57.6`: the pinned package is the same in every column.
        if len(texts) > 1 and len(pins) == len(asked.specifier) == 1:
            fixed[asked.name] = pins[0]
        else:
            varying.append((asked.name, str(asked.specifier) or f">={FIRST.get(asked.name, '0')}"))
    if not varying:
        names = list(fixed)
        # Only pinned packages: the first of them makes the one column.
        varying.append((names[0], f"=={fixed.pop(names[0])}") if names else ("vllm", f">={FIRST['vllm']}"))
    if len(varying) > 1:
        raise UsageError(
            phrase("a matrix has the releases of one package: {names}", names=", ".join(name for name, _ in varying)),
            advice=phrase("Pin the others with ==, for example transformers==4.57.6."),
        )
    return varying[0], fixed


def known_to_records(records: Iterable[Record]) -> str:
    """The specifier of the verl releases that the records speak of: from the oldest that one of them names."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    named = [
        Version(part.version)
        for record in records
        for part in SpecifierSet(record.when.versions.get("verl", ""))
        if part.operator in (">=", "==", "~=")
    ]
    return f">={min(named)}" if named else ""


def _specifier(package: str, text: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(f"=={Version(text)}", prereleases=Version(text).is_prerelease)
    except InvalidVersion:
        pass
    try:
        return SpecifierSet(text.removeprefix(package))
    except InvalidSpecifier as error:
        raise UsageError(
            phrase("{text!r} is no version range", text=text), advice=phrase('Write it as ">=0.6,<0.9" or 0.7.0.')
        ) from error
