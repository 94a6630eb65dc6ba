"""The HTML page of `check --matrix`: a heat map of verl releases and releases of a package, whose cells open their
findings.

The page is one file without references. What its script needs is JSON in it (`page_data`): texts and findings that many
cells share are there once, and cells refer to them by index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from patcher.analysis.findings import Finding, Severity
from patcher.check.matrix import Breaks, Cell, Matrix, WorksWithRecords
from patcher.i18n import Language, Phrase, Phrases, phrase, show
from patcher.records.model import Record
from patcher.report import page
from patcher.report.matrix import missing_lines
from patcher.report.page import both
from patcher.report.records import text_of

SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def matrix_page(
    matrix: Matrix, records: Iterable[Record], *, command: str, date: str, lang: Language | None = None
) -> str:
    """The page's text. Pure but for reading its templates."""
    english, chinese = words("en"), words("zh")
    gone = zip(missing_lines(matrix, "en"), missing_lines(matrix, "zh"), strict=True)
    columns = _lines(matrix.releases, lambda release: [matrix.cells.get((verl, release)) for verl in matrix.verl])
    rows = _lines(matrix.verl, lambda verl: [matrix.cells.get((verl, release)) for release in matrix.releases])
    return page.render_page(
        "matrix",
        heading=both(phrase("verl on {package}", package=matrix.package)),
        command=command,
        date=date,
        lang=lang,
        words={name: (english[name], chinese[name]) for name in english},
        severities=SEVERITIES,
        package=matrix.package,
        columns=[{**one, "gone": one["first"] in matrix.missing} for one in columns],
        rows=[
            {
                **one,
                "cells": [_shown(matrix.cells.get((verl, release))) for release in matrix.releases],
                **_of_row(matrix, verl),
            }
            for one, verl in zip(rows, matrix.verl, strict=True)
        ],
        folds=any(one["folded"] for one in (*columns, *rows)),
        gone=list(gone),
        data=page_data(matrix, records),
    )


def _lines(releases: Sequence[str], cells: Callable[[str], Sequence[Cell | None]]) -> list[dict[str, Any]]:
    """The rows or columns in order. Neighbours with the same findings all along are folded into the first of them."""
    found: list[dict[str, Any]] = []
    before: list[object] | None = None
    for at, release in enumerate(releases):
        now = [_essence(cell) for cell in cells(release)]
        if now == before:
            head = next(one for one in reversed(found) if not one["folded"])
            head["last"], head["end"] = release, at
        found.append({"at": at, "end": at, "first": release, "last": release, "folded": now == before})
        before = now
    return found


def _essence(cell: Cell | None) -> object:
    """What two cells have in common that are shown as one: lines and texts differ from release to release."""
    if cell is None:
        return None
    alike = [
        sorted((one.file, one.symbol, one.severity, one.kind, one.repaired_by or "") for one in findings)
        for findings in (cell.findings, cell.added)
    ]
    return (cell.state, *alike)


def _of_row(matrix: Matrix, verl: str) -> dict[str, Any]:
    """Each finding of one verl once, with the releases that show it: for those who open no cell, and for printing."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, release in enumerate(matrix.releases):
        cell = matrix.cells.get((verl, release))
        for one in dict.fromkeys(
            (one.severity, one.file, one.line, one.symbol, one.repaired_by) for one in (cell.findings if cell else ())
        ):
            found.setdefault(one, []).append(at)
    groups = []
    for severity in SEVERITIES:
        findings = [
            {"file": file, "line": line, "symbol": symbol, "record": record, "releases": _spans(at, matrix.releases)}
            for (of, file, line, symbol, record), at in sorted(found.items(), key=lambda item: item[0][1:4])
            if of == severity
        ]
        if findings:
            groups.append({"severity": severity, "findings": findings})
    return {"findings": groups, "count": len(found)}


def _spans(places: Sequence[int], releases: Sequence[str]) -> str:
    """`0.11.1 – 0.14.0, 0.18.0`."""
    spans: list[list[int]] = []
    for at in places:
        if spans and spans[-1][1] == at - 1:
            spans[-1][1] = at
        else:
            spans.append([at, at])
    return ", ".join(
        releases[first] if first == last else f"{releases[first]} – {releases[last]}" for first, last in spans
    )


def page_data(matrix: Matrix, records: Iterable[Record]) -> dict[str, Any]:
    """What the page's script works on. Texts and findings that many cells share are there once."""
    data = _Data(matrix)
    cells = [[data.cell(matrix.cells.get((verl, release))) for release in matrix.releases] for verl in matrix.verl]
    titles = {record.id: [text_of(record, tongue).title for tongue in ("en", "zh")] for record in records}
    return {
        "package": matrix.package,
        "verl": matrix.verl,
        "releases": matrix.releases,
        "beside": dict(matrix.beside),
        "severities": SEVERITIES,
        "words": {"en": words("en"), "zh": words("zh")},
        "strings": list(data.strings),
        "texts": list(data.texts),
        "findings": list(data.findings),
        "records": {name: both for name, both in titles.items() if name in data.strings},
        "cells": cells,
    }


class _Data:
    """Gathers what cells share; each pool maps a value to its place."""

    def __init__(self, matrix: Matrix) -> None:
        self._column = {release: index for index, release in enumerate(matrix.releases)}
        self.strings: dict[str, int] = {}
        self.texts: dict[tuple[str, str], int] = {}
        self.findings: dict[tuple[object, ...], int] = {}

    def cell(self, cell: Cell | None) -> dict[str, Any] | None:
        if cell is None:
            return None
        state = cell.state
        repairs = state.records if isinstance(state, WorksWithRecords) else ()
        return {
            "state": _name(cell),
            "breaks": cell.breaks,
            "left": cell.left,
            "uses": cell.uses,
            "unresolved": cell.unresolved,
            "repairs": [_at(self.strings, name) for name in repairs],
            "findings": self._all(cell.findings),
            "added": self._all(cell.added),
        }

    def _all(self, findings: Sequence[Finding]) -> list[int]:
        ordered = sorted(findings, key=lambda finding: (finding.file, finding.line, finding.symbol))
        return [self._finding(finding) for finding in ordered]

    def _finding(self, finding: Finding) -> int:
        return _at(
            self.findings,
            (
                _at(self.strings, finding.file),
                finding.line,
                _at(self.strings, finding.symbol),
                finding.kind,
                finding.severity,
                None if finding.since is None else self._column[finding.since],
                None if finding.repaired_by is None else _at(self.strings, finding.repaired_by),
                self._text(finding.detail),
                None if finding.suggestion is None else self._text(finding.suggestion),
            ),
        )

    def _text(self, text: Phrase | Phrases) -> int:
        return _at(self.texts, (text.render("en"), text.render("zh")))


def words(tongue: Language) -> dict[str, str]:
    """What the page itself says, by key."""
    return {
        "lead": show("Which verl release runs on which release: found by reading the sources of both.", tongue),
        "view": show("Shown:", tongue),
        "with_records": show("with the records applied", tongue),
        "as_is": show("as the releases are", tongue),
        "severities": show("Findings:", tongue),
        "break": show("break", tongue),
        "optional": show("optional", tongue),
        "guarded": show("guarded", tongue),
        "inert": show("inert", tongue),
        "works": show("works as is", tongue),
        "records": show("works with n records", tongue),
        "breaks": show("n places break", tongue),
        "others": show("n findings off the plain path", tongue),
        "hint": show("Click a cell for its findings; with the keyboard: arrow keys, Enter, Escape.", tongue),
        "pair": show("verl {verl} on {package} {release}", tongue),
        "state_works": show("works as is", tongue),
        "state_records": show("works with the records ({count})", tongue),
        "state_breaks": show("{count} {count:break|breaks} left with the records applied", tongue),
        "state_as_is_breaks": show("{count} {count:break|breaks}", tongue),
        "more": show("{count} {count:finding|findings} off the plain path", tongue),
        "not_there": show("the sources could not be had", tongue),
        "uses": show("{uses} {uses:use|uses} of {package} looked at, {unresolved} of them not decidable.", tongue),
        "takes": show("These records make it work:", tongue),
        "heading": show("{severity} ({count})", tongue),
        "since": show("since {release}", tongue),
        "always": show("in {release} already", tongue),
        "repaired_by": show("repaired by", tongue),
        "no_record": show("no record repairs this", tongue),
        "added": show("with the records applied only", tongue),
        "nothing": show("Nothing was found.", tongue),
        "none_shown": show("Nothing of the kinds chosen above.", tongue),
        "close": show("close", tongue),
        "copy": show("copy", tongue),
        "copied": show("copied", tongue),
        "unfold": show("each release on its own", tongue),
        "stands_for": show(
            "They come to the same. Lines and texts below are those of verl {verl} on {package} {release}.", tongue
        ),
        "to_apply": show("Make the edits, in a checkout of verl {verl}:", tongue),
        "to_check": show("Look at this pair by itself:", tongue),
        "by_verl": show("All findings, by verl release", tongue),
        "by_verl_lead": show("Each once, with the releases that show it and the record that repairs it.", tongue),
    }


def _shown(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    marks = {"works": "✓", "records": f"+{len(getattr(cell.state, 'records', ()))}", "breaks": f"×{cell.left}"}
    return {
        "after": _name(cell),
        "after_mark": marks[_name(cell)],
        "as_is": "breaks" if cell.breaks else "works",
        "as_is_mark": f"×{cell.breaks}" if cell.breaks else "✓",
        "others": len(cell.findings) - cell.breaks,
    }


def _name(cell: Cell) -> str:
    match cell.state:
        case WorksWithRecords():
            return "records"
        case Breaks():
            return "breaks"
        case _:
            return "works"


def _at(pool: dict[Any, int], value: object) -> int:
    return pool.setdefault(value, len(pool))
