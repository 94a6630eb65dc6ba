"""`status` for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from patcher.language import language, phrase, show
from patcher.reporting.answers import show_json
from patcher.reporting.header import header, problems
from patcher.reporting.outcomes import as_json, nearest_lines, rows, tally
from patcher.reporting.table import show_rows

if TYPE_CHECKING:
    from patcher.operations.standing import Standing
    from patcher.session import Session


def show_status(standing: Standing, session: Session, *, everything: bool) -> None:
    """Print the contract's JSON, or a table with one row a record."""
    if session.output == "json":
        show_json(status_json(standing, session))
        return
    tongue = language()
    click.echo("\n".join([header(session, tongue), *problems(session, tongue), ""]))
    show_rows(rows([outcome for outcome in standing.outcomes if everything or outcome.kind != "not-needed"], tongue))
    for line in nearest_lines(standing.outcomes, tongue):
        click.echo(f"  {line}")
    if standing.unrecorded:
        shown = ", ".join(f"{mark.file}:{mark.line}" for mark in standing.unrecorded[:5])
        more = len(standing.unrecorded) - 5
        text = phrase(
            'marked "# {word}" and covered by no record: {places}',
            word=session.config.marker,
            places=shown + (f" (+{more})" if more > 0 else ""),
        )
        click.echo(f"  {len(standing.unrecorded)} {text.render(tongue)}")
    click.echo(f"\n{tally(standing.outcomes, tongue)}{_next(standing, tongue)}")


def status_json(standing: Standing, session: Session) -> dict[str, Any]:
    return {
        "root": str(session.tree.root),
        "versions": session.versions,
        "records": [as_json(outcome) for outcome in standing.outcomes],
        "written": [],
        "unrecorded": [{"file": mark.file, "line": mark.line} for mark in standing.unrecorded],
    }


def _next(standing: Standing, tongue: Any) -> str:
    kinds = {outcome.kind for outcome in standing.outcomes}
    if "tampered" in kinds:
        return show(". Next: uky-patch explain ID, or uky-patch revert --force", tongue)
    if not standing.clean and kinds & {"drifted", "ambiguous", "conflict", "unparseable", "missing-file"}:
        return show(". Next: uky-patch explain ID", tongue)
    if "pending" in kinds:
        return show(". Next: uky-patch apply --diff", tongue)
    return show(". Nothing to do", tongue)
