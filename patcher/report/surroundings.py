"""What is to be said before records are believed: which environment was looked at, and what records were tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, show
from patcher.session.session import NAME_IT

if TYPE_CHECKING:
    from patcher.check.untried import Untried
    from patcher.session.session import Session


def unknown_environment(session: Session, tongue: Language) -> list[str]:
    """The lines that come first where nobody has said which environment trains."""
    why = session.unknown_environment
    if why is None:
        return []
    return [f"{show('note', tongue)}: {why.render(tongue)}", f"  {NAME_IT.render(tongue)}", ""]


def environment_json(session: Session) -> dict[str, Any]:
    environment = session.environment
    found: dict[str, Any] = {"python": str(environment.python), "chosen_by": environment.chosen_by}
    return {**found, "known": environment.known, "advice": "" if environment.known else str(NAME_IT)}


def untried_json(found: Untried | None) -> dict[str, Any] | None:
    if found is None:
        return None
    counts = None if found.found is None else dict(found.found)
    told: dict[str, Any] = {"why": str(found.why), "check": counts, "unreadable": found.unreadable}
    return {**told, "unknown": str(found.unknown), "next": "" if found.clean else str(found.next)}
