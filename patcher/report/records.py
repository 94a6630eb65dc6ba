"""Records as rows and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from patcher.i18n import Language, phrase, show
from patcher.records.model import Record, Text, When
from patcher.report.table import Cell, Row


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
