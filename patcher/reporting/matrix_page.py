"""The matrix as one self-contained page: a heat map whose cells open their findings."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from patcher import __version__
from patcher.compat.matrix import Breaks, Cell, Matrix, WorksWithRecords
from patcher.compat.model import Finding, Severity
from patcher.data import shipped
from patcher.language import Language, Phrase, Phrases, language, phrase, show
from patcher.records.model import Record
from patcher.reporting.matrix import missing_lines
from patcher.reporting.records import text_of
from patcher.reporting.whole import write_whole
from patcher.templating import environment

SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def write_page(matrix: Matrix, records: Iterable[Record], file: Path, *, command: str, date: str) -> None:
    """Write the page. Raises TreeError where the file cannot be written."""
    write_whole(file, render_page(matrix, records, command=command, date=date, lang=language()))


def render_page(matrix: Matrix, records: Iterable[Record], *, command: str, date: str, lang: Language) -> str:
    """The page's text. Pure but for reading its templates."""
    from markupsafe import Markup

    from patcher.secrets.redacting import here

    folder = shipped("templates")
    script, style = (_inline(folder / name) for name in ("matrix.js", "matrix.css"))
    engine = environment(autoescape=True)
    engine.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "sort_keys": False}
    gone = zip(missing_lines(matrix, "en"), missing_lines(matrix, "zh"), strict=True)
    return engine.get_template("matrix.html.j2").render(
        lang="zh-CN" if lang == "zh" else "en",
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        words=words(matrix.package, lang),
        severities=SEVERITIES,
        package=matrix.package,
        releases=matrix.releases,
        missing=matrix.missing,
        rows=[
            {"verl": verl, "cells": [_shown(matrix.cells.get((verl, release))) for release in matrix.releases]}
            for verl in matrix.verl
        ],
        gone=list(gone),
        command=here().text(command),
        date=date,
        version=__version__,
        data=here().value(page_data(matrix, records)),
        script=Markup(script),  # noqa: S704
        style=Markup(style),  # noqa: S704
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
        "severities": SEVERITIES,
        "words": {"en": words(matrix.package, "en"), "zh": words(matrix.package, "zh")},
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


def words(package: str, tongue: Language) -> dict[str, str]:
    """What the page itself says, by key."""
    return {
        "title": phrase("verl on {package}", package=package).render(tongue),
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
        "made_with": show("Made with", tongue),
        "no_script": show("Without JavaScript the cells do not open.", tongue),
    }


def _shown(cell: Cell | None) -> dict[str, str] | None:
    if cell is None:
        return None
    marks = {"works": "✓", "records": f"+{len(getattr(cell.state, 'records', ()))}", "breaks": f"×{cell.left}"}
    return {
        "after": _name(cell),
        "after_mark": marks[_name(cell)],
        "as_is": "breaks" if cell.breaks else "works",
        "as_is_mark": f"×{cell.breaks}" if cell.breaks else "✓",
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


def _inline(path: Path) -> str:
    """A script or style sheet that stands inside the page, where it must not end its own element."""
    text = path.read_text(encoding="utf-8")
    assert "</" not in text, path
    return text


def _hash(text: str) -> str:
    """What a content security policy calls an inline script or style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
