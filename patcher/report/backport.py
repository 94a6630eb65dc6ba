"""What a fix of upstream verl comes to on this tree, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.i18n import Language, language, phrase, show
from patcher.report.record import record_json, records_found
from patcher.terminal.document import Json, Lines, Part

if TYPE_CHECKING:
    from patcher.recording.backporting import Backport
    from patcher.recording.saving import Saved
    from patcher.session.session import Session


def backport_report(found: Backport, session: Session, saved: Saved | None, *, diff: bool) -> Iterator[Part]:
    """`saved`: None where nothing was written."""
    if session.output == "json":
        yield Json({**record_json(found.proposal, session, saved), **_json(found)})
        return
    tongue = language()
    base = found.proposal.base
    counts = phrase(
        "{carried} of {count} {count:change|changes} carried over, {there} here already, {left} left",
        count=len(found.ported),
        **{fate: found.count(fate) for fate in ("carried", "there", "left")},
    )
    yield Lines(f"{base.name}: {base.subject}", f"  {show(counts, tongue)}", *_about(found, tongue), "")
    if found.count("carried") or found.proposal.left:
        yield from records_found(found.proposal, session, saved, diff=diff)
    else:
        yield Lines(phrase("this tree has it already, or the commit changes nothing that training reads"))


def _about(found: Backport, tongue: Language) -> Iterator[str]:
    fix = found.proposal.base.fix
    if fix is not None and fix.since:
        mine = phrase("verl has it since {version}, and this tree is of that or a later one", version=fix.since)
        text = phrase("verl has it since {version}", version=fix.since) if fix.is_newer else mine
        yield f"  {show(text, tongue)}"
    if found.skipped:
        text = phrase("{count} {count:file|files} of tests or documents left out", count=len(found.skipped))
        yield f"  {show(text, tongue)}"
    if found.unjudged is not None:
        yield f"  {show(phrase('check was not asked: {why}', why=found.unjudged), tongue)}"
    for one in found.proposal.repaired:
        text = phrase("check no longer finds: {what} ({place})", what=one.detail, place=f"{one.file}:{one.line}")
        yield f"  {show(text, tongue)}"


def _json(found: Backport) -> dict[str, object]:
    fix = found.proposal.base.fix
    return {
        "commit": fix.commit if fix is not None else "",
        "subject": found.proposal.base.subject,
        "upstream": fix.address if fix is not None else "",
        "since": fix.since if fix is not None else "",
        "ported": [
            {"upstream": path, "line": one.line, "fate": one.fate, "file": one.file, "why": str(one.why or "")}
            for path, one in found.ported
        ],
        "repaired": [
            {"symbol": one.symbol, "file": one.file, "line": one.line, "since": one.since}
            for one in found.proposal.repaired
        ],
        "unjudged": str(found.unjudged or ""),
        "skipped": list(found.skipped),
    }
