"""Every verl release on every release of a package: what each pair comes to, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from patcher.analysis.model import Finding, Report, Severity
from patcher.i18n import Phrase, Phrases


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
        for cell in dated(matrix.row(verl)):
            cells[verl, cell.release] = cell
    return replace(matrix, cells=cells)


def dated(row: Sequence[Cell]) -> Iterable[Cell]:
    """The cells of one row, oldest first, with `since` in their findings."""
    running: dict[tuple[str, str, str, str], str | None] = {}
    for index, cell in enumerate(row):
        first = cell.release if index else None
        shown = (*cell.findings, *cell.added)
        running = {finding.key: running.get(finding.key, first) for finding in shown}
        yield replace(
            cell,
            findings=tuple(replace(finding, since=running[finding.key]) for finding in cell.findings),
            added=tuple(replace(finding, since=running[finding.key]) for finding in cell.added),
        )
