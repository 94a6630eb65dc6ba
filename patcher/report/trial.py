"""What `explain --try` found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patcher.i18n import Phrase, language, phrase, show
from patcher.rewrite.in_words import in_words
from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    OtherFile,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)
from patcher.terminal.document import Diff, Json, Lines, Part, unified

if TYPE_CHECKING:
    from patcher.recording.trial import Trial
    from patcher.records.model import Record
    from patcher.session.session import Session


def trial_report(record: Record, found: Trial, session: Session) -> Iterator[Part]:
    """Each edit with what came of it, and the change."""
    diff = unified(found.file.name, found.before, found.after)
    if session.output == "json":
        edits: list[dict[str, Any]] = [{"edit": str(in_words(edit)), **_json(outcome)} for edit, outcome in found.edits]
        yield Json({"id": record.id, "file": str(found.file), "edits": edits, "diff": diff})
        return
    tongue = language()
    for edit, outcome in found.edits:
        yield Lines(in_words(edit), f"  {show(_said(outcome), tongue)}")
    if diff:
        yield Lines("")
        yield Diff(diff)


def _json(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Rewritten(lines=lines):
            return {"outcome": "made", "lines": list(lines)}
        case AlreadyDone(lines=lines):
            return {"outcome": "done", "lines": list(lines)}
        case AnchorAmbiguous(lines=lines):
            return {"outcome": "ambiguous", "lines": list(lines)}
        case AnchorMissing(nearest=nearest):
            return {"outcome": "missing", "lines": [nearest.line] if nearest is not None else []}
        case Overlap(line=line):
            return {"outcome": "conflict", "lines": [line]}
        case OtherFile(line=line):
            return {"outcome": "other-file", "lines": [line]}
        case Unparseable(line=line):
            return {"outcome": "unparseable", "lines": [line]}


def _said(outcome: Outcome) -> Phrase:
    match outcome:
        case Rewritten(lines=lines):
            return phrase("made; new lines: {lines}", lines=_listed(lines))
        case AlreadyDone(lines=lines):
            return phrase("done already, in line {lines}", lines=_listed(lines))
        case AnchorAmbiguous(expected, lines):
            text = "expected {expected} {expected:place|places}, found {found} (lines {lines})"
            return phrase(text, expected=expected, found=len(lines), lines=_listed(lines))
        case AnchorMissing(expected, found, None):
            return phrase("expected {expected} {expected:place|places}, found {found}", expected=expected, found=found)
        case AnchorMissing(expected, found, nearest):
            text = "expected {expected} {expected:place|places}, found {found}; nearest is line {line}: {text}"
            assert nearest is not None
            return phrase(text, expected=expected, found=found, line=nearest.line, text=nearest.text)
        case Overlap(line, other):
            return phrase("line {line} is of {record}", line=line, record=other)
        case OtherFile(line):
            return phrase("the file is another one, from line {line} on", line=line)
        case Unparseable(line, message):
            return phrase("line {line}: {why}", line=line, why=message)


def _listed(lines: tuple[int, ...]) -> str:
    return ", ".join(map(str, lines))
