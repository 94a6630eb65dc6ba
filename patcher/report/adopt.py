"""The report of `adopt`: which records took over edits made by hand, which were refused and why, and what was kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.i18n import language, phrase, show
from patcher.report.apply_result import apply_report
from patcher.report.records import text_of
from patcher.terminal.document import Json, Lines, Part

if TYPE_CHECKING:
    from patcher.recording.adopting import Adopted
    from patcher.session.session import Session


def adopted_report(found: Adopted, session: Session, *, diff: bool, dry_run: bool) -> Iterator[Part]:
    """The report of the apply that it is, what could not be taken over, and what a record warns of."""
    taken = [record.id for record in found.records]
    parts = apply_report(found.done, session, verb="adopt", diff=diff, dry_run=dry_run)
    if session.output == "json":
        for part in parts:
            if isinstance(part, Json):
                refused = [{"id": name, "why": str(why)} for name, why in found.refused]
                extra = {"base": str(found.base), "adopted": taken, "refused": refused, "kept": list(found.kept)}
                yield Json({**part.report, **extra})
        return
    yield from parts
    tongue = language()
    lines: list[str] = []
    for record in found.records:
        # A record that is off is one that does harm, or that few need: whoever has it by hand should know why.
        if not record.enabled:
            text = phrase("{id} is off by default: {reason}", id=record.id, reason=text_of(record, tongue).reason)
            lines.append(text.render(tongue))
    if found.refused:
        lines.append(show(phrase("not adopted:"), tongue))
        lines += [f"  {name}: {show(why, tongue)}" for name, why in found.refused]
    for path in found.kept:
        lines.append(f"  {show('kept what was changed by hand', tongue)}: {path}")
    if lines:
        yield Lines("", *lines)
