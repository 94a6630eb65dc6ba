"""Records as rows, as JSON, explained against one tree, and tried on one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, Phrase, language, phrase, show
from patcher.plan.outcome import FAILED
from patcher.records.model import Record, Text, When
from patcher.report.commands import command_line
from patcher.report.header import header
from patcher.report.outcomes import as_json, label
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
from patcher.terminal.table import Cell, Row

if TYPE_CHECKING:
    from patcher.plan.outcome import RecordOutcome
    from patcher.recording.trial import Trial
    from patcher.session.session import Session


def text_of(record: Record, language: Language) -> Text:
    """Title and reason in the reader's language, where the record has them."""
    if language == "zh" and record.zh is not None:
        return record.zh
    return Text(record.title, record.reason)


def conditions(when: When, language: Language) -> str:
    """`verl >=0.6,<0.7, vllm >=0.12, without flash-attn`."""
    parts = [f"{name} {specifier}" for name, specifier in when.versions.items()]
    parts += [f"{show('has', language)} {symbol}" for symbol in when.has]
    parts += [f"{show('lacks', language)} {symbol}" for symbol in when.lacks]
    parts += [f"{show('without', language)} {name}" for name in when.absent]
    parts += [show(phrase("{name} under another name", name=name), language) for name in when.renamed]
    return ", ".join(parts)


def record_rows(records: Sequence[Record], language: Language) -> list[Row]:
    """A row a record for `list`: id, whether it is off by default, title, version ranges, tags."""
    return [
        (
            Cell(record.id),
            Cell(show("" if record.enabled else "off", language)),
            Cell(text_of(record, language).title),
            Cell(
                conditions(When(record.when.versions, absent=record.when.absent, renamed=record.when.renamed), language)
            ),
            Cell(", ".join(record.tags)),
        )
        for record in records
    ]


def record_json(record: Record) -> dict[str, Any]:
    """A record as `list` and `explain` give it to programs."""
    return {
        "id": record.id,
        "title": record.title,
        "reason": record.reason,
        "upstream": record.upstream,
        "lifetime": record.lifetime,
        "tags": list(record.tags),
        "enabled": record.enabled,
        "after": list(record.after),
        "when": {
            **record.when.versions,
            "has": list(record.when.has),
            "lacks": list(record.when.lacks),
            "absent": list(record.when.absent),
            "renamed": list(record.when.renamed),
        },
        "files": list(record.files),
        "edits": len(record.edits),
        "path": str(record.path),
    }


def explanation_report(
    record: Record, outcome: RecordOutcome, changes: Iterable[tuple[str, str, str]], session: Session
) -> Iterator[Part]:
    """What the record does, its outcome on this tree, and its change or the nearest candidate.

    `changes` are the files that this record alone changes: path, text before, text after.
    """
    if session.output == "json":
        nearest = [{"file": file, "line": near.line, "text": near.text} for file, near in outcome.nearest]
        yield Json({**record_json(record), **as_json(outcome), "nearest": nearest})
        return
    tongue = language()
    yield Lines(*_about(record, tongue), "", *_here(outcome, session, tongue))
    for path, before, after in changes:
        yield Lines("")
        yield Diff(unified(path, before, after))
    if outcome.kind == "pending":
        command = command_line(session, "apply", record.id)
        yield Lines("", phrase("Next: {command}", command=command))


def _about(record: Record, tongue: Language) -> list[str]:
    text = text_of(record, tongue)
    lines = [f"{record.id}: {text.title}", f"  {text.reason}"]
    if needed := conditions(record.when, tongue):
        lines.append(f"  {show('for', tongue)}: {needed}")
    lines.append(f"  {show('edits', tongue)}: " + ", ".join(record.files))
    if record.upstream:
        lines.append(f"  {show('upstream', tongue)}: {record.upstream}")
    if record.path is not None:
        lines.append(f"  {show('record', tongue)}: {record.path}")
    return lines


def _here(outcome: RecordOutcome, session: Session, tongue: Language) -> list[str]:
    lines = [header(session, tongue), f"  {label(outcome.kind, tongue)}: {show(outcome.detail, tongue)}"]
    lines += [f"  {spot.file}:{spot.line}" for spot in outcome.spots]
    lines += [f"  {show('nearest', tongue)}: {file}:{near.line}: {near.text}" for file, near in outcome.nearest]
    if outcome.kind in ("drifted", "ambiguous"):
        advice = "Upstream may have fixed this: if so, narrow [when]; otherwise update the edit."
        lines.append(f"  {show(advice, tongue)}")
    if outcome.kind in FAILED and outcome.kind != "tampered":
        without = command_line(session, "apply", "--skip", outcome.id)
        lines.append(f"  {phrase('Without it: {command}', command=without).render(tongue)}")
        for_good = command_line(session, "apply", "--skip", outcome.id, "--remember")
        lines.append(f"  {phrase('Without it from now on: {command}', command=for_good).render(tongue)}")
    return lines


def trial_report(record: Record, found: Trial, session: Session) -> Iterator[Part]:
    """Each edit with what came of it, and the change."""
    diff = unified(found.file.name, found.before, found.after)
    if session.output == "json":
        edits: list[dict[str, Any]] = [
            {"edit": str(in_words(edit)), **_trial_json(outcome)} for edit, outcome in found.edits
        ]
        yield Json({"id": record.id, "file": str(found.file), "edits": edits, "diff": diff})
        return
    tongue = language()
    for edit, outcome in found.edits:
        yield Lines(in_words(edit), f"  {show(_said(outcome), tongue)}")
    if diff:
        yield Lines("")
        yield Diff(diff)


def _trial_json(outcome: Outcome) -> dict[str, Any]:
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
