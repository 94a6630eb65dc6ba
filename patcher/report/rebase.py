"""What became of a fork's records on another verl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.i18n import language, phrase, show
from patcher.report.records import text_of
from patcher.terminal.document import Json, Lines, Part, Table
from patcher.terminal.table import Cell

if TYPE_CHECKING:
    from patcher.recording.rebasing import Rebase
    from patcher.session.session import Session


def rebase_report(found: Rebase, session: Session) -> Iterator[Part]:
    """Each record with its fate, and the branch."""
    if session.output == "json":
        records = [
            {"id": one.record.id, "fate": one.fate, "detail": str(one.detail), "files": sorted(one.files)}
            for one in found.records
        ]
        names = {"from": str(found.base.name), "to": str(found.target.name), "branch": found.branch}
        yield Json({**names, "records": records, "own": list(found.own), "commits": list(found.commits)})
        return
    tongue = language()
    heading = phrase("from {base} to {target}", base=found.base.name, target=found.target.name)
    yield Lines(heading, "")
    yield Table(
        [
            (
                Cell(show(one.fate.replace("-", " "), tongue)),
                Cell(one.record.id),
                Cell(text_of(one.record, tongue).title),
                Cell("" if one.files else show(one.detail, tongue)),
            )
            for one in found.records
        ]
    )
    made = sum(bool(one.files) for one in found.records)
    fields = {"count": made, "all": len(found.records), "branch": found.branch, "own": len(found.own)}
    if not found.commits:
        text = "{count} of {all} records would be on the branch {branch}, with {own} {own:file|files} of the fork's own"
        yield Lines("", phrase(text, **fields))
        return
    text = "{count} of {all} records are on the branch {branch}, with {own} {own:file|files} of the fork's own"
    yield Lines("", phrase(text, **fields))
    yield Lines(phrase("Next: {command}", command=f"git switch {found.branch}"))
