"""`status` for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.language import language, phrase, show
from patcher.planning.outcome import FAILED
from patcher.reporting.answers import show_json
from patcher.reporting.header import about_pre_images, header, problems
from patcher.reporting.outcomes import as_json, nearest_lines, rows, tally
from patcher.reporting.surroundings import environment_json, unknown_environment, untried_json
from patcher.reporting.table import show_rows
from patcher.session import NAME_IT
from patcher.terminal import say

if TYPE_CHECKING:
    from patcher.operations.standing import Standing
    from patcher.operations.untried import Untried
    from patcher.session import Session


def show_status(standing: Standing, beyond: Untried | None, session: Session, *, everything: bool) -> None:
    """Print the contract's JSON, or a table with one row a record."""
    if session.output == "json":
        show_json(status_json(standing, beyond, session))
        return
    tongue = language()
    told = [*problems(session, tongue), *about_pre_images(standing.pre_images, tongue)]
    say(*unknown_environment(session, tongue), header(session, tongue), *told, "")
    show_rows(rows([outcome for outcome in standing.outcomes if everything or outcome.kind != "not-needed"], tongue))
    for line in nearest_lines(standing.outcomes, tongue):
        say(f"  {line}")
    if standing.unrecorded:
        shown = ", ".join(f"{mark.file}:{mark.line}" for mark in standing.unrecorded[:5])
        more = len(standing.unrecorded) - 5
        text = phrase(
            'marked "# {word}" and covered by no record: {places}',
            word=session.config.marker,
            places=shown + (f" (+{more})" if more > 0 else ""),
        )
        say(f"  {len(standing.unrecorded)} {text.render(tongue)}")
    if beyond is not None:
        say("", beyond.told.render(tongue))
    say("", f"{tally(standing.outcomes, tongue)}{_next(standing, beyond, session, tongue)}")


def status_json(standing: Standing, beyond: Untried | None, session: Session) -> dict[str, Any]:
    return {
        "root": str(session.tree.root),
        "environment": environment_json(session),
        "versions": session.versions,
        "records": [as_json(outcome) for outcome in standing.outcomes],
        "written": [],
        "unrecorded": [{"file": mark.file, "line": mark.line} for mark in standing.unrecorded],
        "ledger": standing.pre_images.as_json(),
        "untried": untried_json(beyond),
    }


def _next(standing: Standing, beyond: Untried | None, session: Session, tongue: Any) -> str:
    if not session.environment.known:
        return phrase(". Next: {step}", step=NAME_IT).render(tongue)
    kinds = {outcome.kind: outcome.id for outcome in reversed(standing.outcomes)}
    about = standing.pre_images
    if "tampered" in kinds and about.replaced.mixed:
        return show(". Next: uky-patch apply --merge", tongue)
    if "tampered" in kinds:
        text = phrase(". Next: uky-patch explain {id}, or uky-patch revert --force", id=kinds["tampered"])
        return text.render(tongue)
    failed = [kinds[kind] for kind in FAILED if kind in kinds]
    if failed:
        return phrase(". Next: uky-patch explain {id}", id=min(failed)).render(tongue)
    if about.stale:
        return show(". Next: uky-patch apply", tongue)
    if about:
        return ""
    if "pending" in kinds:
        return show(". Next: uky-patch apply --diff", tongue)
    if beyond is not None and not beyond.clean:
        return phrase(". Next: {step}", step=beyond.next).render(tongue)
    return show(". Nothing to do", tongue)
