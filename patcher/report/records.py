"""Records as rows, as JSON and explained against one tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from patcher.i18n import Language, language, phrase, show
from patcher.plan.outcome import FAILED
from patcher.records.model import Record, Text, When
from patcher.report.commands import command_line
from patcher.report.header import header
from patcher.report.outcomes import as_json, label
from patcher.terminal.document import Diff, Json, Lines, Part, unified
from patcher.terminal.table import Cell, Row

if TYPE_CHECKING:
    from patcher.plan.outcome import RecordOutcome
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
    lines.append(f"  {show('for', tongue)}: {conditions(record.when, tongue)}")
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
