"""A change of pins for people, on one screen, and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, language, phrase, show
from patcher.report.check import check_json, finding_json
from patcher.report.outcomes import as_json
from patcher.terminal.document import Json, Lines, Part, Table
from patcher.terminal.table import Cell

if TYPE_CHECKING:
    from patcher.check.pinning import Pins
    from patcher.plan.outcome import RecordOutcome
    from patcher.session.session import Session

_NAMED = 4
"""Names in one line; the others are an ellipsis. Set by hand."""


def pins_report(done: Pins, session: Session) -> Iterator[Part]:
    """Print JSON, or one screen."""
    if session.output == "json":
        yield Json(pins_json(done, session))
        return
    tongue = language()
    yield Table([_version_row(name, done, tongue) for name in done.proposed])
    rows = [
        *_record_rows("now needed", "yellow", done.needed, tongue),
        *_record_rows("no longer needed", "green", done.unneeded, tongue),
        *_record_rows("drifted", "red", done.drifted, tongue),
        *_break_rows(done, tongue),
    ]
    yield Lines("", *_about_packages(done, tongue), "")
    yield Table(rows)
    yield Lines(*[""] * bool(rows), _sentence(done, tongue))


def pins_json(done: Pins, session: Session) -> dict[str, Any]:
    return {
        "root": str(session.tree.root),
        "from": dict(done.before),
        "to": dict(done.proposed),
        "needed": [one.id for one in done.needed],
        "unneeded": [one.id for one in done.unneeded],
        "drifted": [as_json(one) for one in done.drifted],
        "breaks": [finding_json(one) for one in done.breaks],
        "check": check_json(done.check) if done.check is not None else None,
        "judged": {"whole": list(done.judged[0]), "names": list(done.judged[1])},
        "unchanged": list(done.unchanged),
        "untold": list(done.untold),
        "left_out": list(done.left_out),
    }


def _about_packages(done: Pins, tongue: Language) -> Iterator[str]:
    """Which packages are judged and which are not, a line each; of those that nothing is about only the first few."""
    whole, names = done.judged
    groups = {
        "every use is judged: {names}": whole,
        "judged only where a name is gone: {names}": names,
        "the same version, not judged: {names}": done.unchanged,
        "the file tells no version, not judged: {names}": done.untold,
    }
    for text, packages in groups.items():
        if packages:
            yield phrase(text, names=", ".join(packages)).render(tongue)
    if done.left_out:
        shown = ", ".join(done.left_out[:_NAMED]) + (", …" if len(done.left_out) > _NAMED else "")
        text = "left out, as neither records nor check are about them: {count} ({names})"
        yield phrase(text, count=len(done.left_out), names=shown).render(tongue)


def _version_row(name: str, done: Pins, tongue: Language) -> tuple[Cell, ...]:
    before, after = done.before.get(name, show("unknown", tongue)), done.proposed[name]
    return (Cell(name), Cell(before), Cell("=" if before == after else "->"), Cell(after))


def _record_rows(
    label: str, style: str, outcomes: Iterable[RecordOutcome], tongue: Language
) -> Iterator[tuple[Cell, ...]]:
    for one in outcomes:
        title = one.title_zh if tongue == "zh" and one.title_zh else one.title
        detail = Cell("", reason=one.detail) if label == "drifted" else Cell(title)
        yield Cell(show(label, tongue), style), Cell(one.id), detail


def _break_rows(done: Pins, tongue: Language) -> Iterator[tuple[Cell, ...]]:
    for one in done.breaks:
        place = f"{one.file.rpartition('/')[2]}:{one.line}"
        yield Cell(show("breaks", tongue), "red"), Cell(place), Cell("", reason=one.detail)


def _sentence(done: Pins, tongue: Language) -> str:
    if done.check is None:
        return show("no version changes", tongue)
    text = phrase(
        "{needed} {needed:record|records} now needed, {unneeded} no longer needed, {drifted} drifted; "
        "{breaks} {breaks:break|breaks} left after apply",
        needed=len(done.needed),
        unneeded=len(done.unneeded),
        drifted=len(done.drifted),
        breaks=len(done.breaks),
    )
    return text.render(tongue)
