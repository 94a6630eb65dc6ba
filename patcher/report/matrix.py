"""The report of `check --matrix`: a table of verl releases against releases of a package, releases that come out alike
in one row.

`ok` works as it is, `+2` works with two records, `x3` has three breaks left with the records applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patcher.check.matrix import Breaks, Cell, Matrix, Works, WorksWithRecords
from patcher.i18n import Language, Phrase, language, phrase
from patcher.report.check import finding_json, page_json, page_lines
from patcher.terminal.document import Json, Lines, Part, Table
from patcher.terminal.table import Cell as TableCell

if TYPE_CHECKING:
    from pathlib import Path

    from patcher.session.session import Session

NONE = "–"
_STYLES = {Works: "green", WorksWithRecords: "yellow", Breaks: "red"}


@dataclass(frozen=True, slots=True)
class Span:
    """Releases in a row that come to the same for every verl; `cells` are by verl, None where one is missing."""

    first: str
    last: str
    cells: tuple[Cell | None, ...]

    @property
    def shown(self) -> str:
        """`0.11.1 – 0.14.0`, or the one release."""
        return self.first if self.first == self.last else f"{self.first} – {self.last}"


def matrix_report(matrix: Matrix, session: Session, *, page: Path | None = None) -> Iterator[Part]:
    """Print the JSON, or a table with a line for each span of releases. `page`: where the page was written."""
    if session.output == "json":
        yield Json({**matrix_json(matrix), **page_json(page)})
        return
    tongue = language()
    head = [TableCell(matrix.package), *(TableCell(f"verl {verl}") for verl in matrix.verl)]
    rows = [[TableCell(span.shown), *(_cell(cell) for cell in span.cells)] for span in spans(matrix, mark)]
    yield Table(rows, head=head)
    marks = phrase("ok: works as is; +n: works with n records; xn: n breaks are left with the records applied")
    yield Lines("", marks)
    yield Lines(*missing_lines(matrix, tongue), totals(matrix), *page_lines(page, tongue))


def totals(matrix: Matrix) -> Phrase:
    """How many pairs come to what."""
    counts = {kind: sum(isinstance(cell.state, kind) for cell in matrix.cells.values()) for kind in _STYLES}
    return phrase(
        "{pairs} {pairs:pair|pairs}: {works} {works:works as it is|work as they are}, "
        "{records} with records, {breaks} {breaks:breaks|break}",
        pairs=len(matrix.cells),
        works=counts[Works],
        records=counts[WorksWithRecords],
        breaks=counts[Breaks],
    )


def missing_lines(matrix: Matrix, tongue: Language) -> list[str]:
    """The releases whose sources could not be had, a line each."""
    gone = [("verl", item) for item in matrix.missing_verl.values()]
    gone += [(matrix.package, item) for item in matrix.missing.values()]
    text = "{name} {release} is left out: {why}"
    return [phrase(text, name=name, release=item.release, why=item.reason).render(tongue) for name, item in gone]


def mark(cell: Cell | None) -> str:
    """What a cell comes to with the records, in a few signs."""
    match cell.state if cell is not None else None:
        case None:
            return NONE
        case Works():
            return "ok"
        case WorksWithRecords(records=records):
            return f"+{len(records)}"
        case Breaks(count=count):
            return f"x{count}"


def mark_as_is(cell: Cell | None) -> str:
    """What a cell comes to without records."""
    if cell is None:
        return NONE
    return f"x{cell.breaks}" if cell.breaks else "ok"


def spans(matrix: Matrix, marked: Callable[[Cell | None], str]) -> list[Span]:
    """The releases, with neighbours put together that have the same marks all along."""
    found: list[Span] = []
    for release in matrix.releases:
        cells = tuple(matrix.cells.get((verl, release)) for verl in matrix.verl)
        if found and _marks(found[-1].cells, marked) == _marks(cells, marked):
            found[-1] = Span(found[-1].first, release, found[-1].cells)
        else:
            found.append(Span(release, release, cells))
    return found


def _marks(cells: Sequence[Cell | None], marked: Callable[[Cell | None], str]) -> list[str]:
    return [marked(cell) for cell in cells]


def _cell(cell: Cell | None) -> TableCell:
    return TableCell(mark(cell), _STYLES[type(cell.state)] if cell is not None else "")


def matrix_json(matrix: Matrix) -> dict[str, Any]:
    """The pairs, each as a check of its own would give it, with what it comes to."""
    return {
        "package": matrix.package,
        "verl": list(matrix.verl),
        "releases": list(matrix.releases),
        "missing": [
            *(
                {"name": "verl", "version": gone.release, "reason": str(gone.reason)}
                for gone in matrix.missing_verl.values()
            ),
            *(
                {"name": matrix.package, "version": gone.release, "reason": str(gone.reason)}
                for gone in matrix.missing.values()
            ),
        ],
        "pairs": [pair_json(cell) for verl in matrix.verl for cell in matrix.row(verl)],
    }


def pair_json(cell: Cell) -> dict[str, Any]:
    """One verl release on one release of the package: findings as `check` has them, and what repairs them."""
    state = cell.state
    return {
        "verl": cell.verl,
        "against": dict(cell.against),
        "uses": cell.uses,
        "unresolved": cell.unresolved,
        "findings": [finding_json(finding) for finding in cell.findings],
        "state": _STATES[type(state)],
        "records": list(state.records) if isinstance(state, WorksWithRecords) else [],
        "breaks": cell.breaks,
        "breaks_left": cell.left,
        "added_by_records": [finding_json(finding) for finding in cell.added],
    }


_STATES = {Works: "works", WorksWithRecords: "works-with-records", Breaks: "breaks"}
