"""Outcomes of records (pending, applied, drifted, not needed, …) as rows of a table, as a tally in one line, and as
JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from patcher.i18n import Language, Phrases, phrase, show
from patcher.plan.outcome import FAILED, Kind, RecordOutcome
from patcher.terminal.table import Cell, Row

_ORDER: tuple[str, ...] = (
    "tampered",
    "unparseable",
    "missing-file",
    "conflict",
    "ambiguous",
    "drifted",
    "skipped",
    "pending",
    "applied",
    "adopted",
    "resolved",
    "not-needed",
)
_STYLES: Mapping[str, str] = {
    **dict.fromkeys(FAILED, "red"),
    "skipped": "yellow",
    "pending": "yellow",
    "applied": "green",
    "adopted": "cyan",
    "resolved": "cyan",
}


SKIPPED = "skipped"
"""What people are shown of a record that is needed and left out; for programs it is not needed."""


def label(kind: Kind | str, language: Language) -> str:
    """The name of an outcome in the reader's language: `not needed`."""
    return show(kind.replace("-", " "), language)


def kind_shown(outcome: RecordOutcome) -> str:
    """The outcome as people see it, where a record that was left out is `skipped`."""
    return SKIPPED if outcome.skipped else outcome.kind


def rows(outcomes: Sequence[RecordOutcome], language: Language) -> list[Row]:
    """Worst first; within a kind in the order of the plan."""
    return [
        (
            Cell(label(kind_shown(outcome), language), _STYLES.get(kind_shown(outcome), "")),
            Cell(outcome.id),
            Cell(_where(outcome)),
            _remark(outcome, language),
        )
        for outcome in sorted(outcomes, key=lambda outcome: _ORDER.index(kind_shown(outcome)))
    ]


def nearest_lines(outcomes: Sequence[RecordOutcome], language: Language) -> list[str]:
    """For records that found no anchor: the nearest place in the file."""
    return [
        f"{outcome.id}: {show('nearest', language)}: {file}:{candidate.line}: {candidate.text}"
        for outcome in outcomes
        if outcome.kind in FAILED
        for file, candidate in outcome.nearest
    ]


def tally(outcomes: Sequence[RecordOutcome], language: Language) -> str:
    """`7 pending, 1 adopted, 9 not needed`."""
    counts = Counter(map(kind_shown, outcomes))
    parts = [f"{counts[kind]} {label(kind, language)}" for kind in _ORDER if counts[kind]]
    return ("，" if language == "zh" else ", ").join(parts) or show("no records", language)


def as_json(outcome: RecordOutcome) -> dict[str, Any]:
    """One entry of `records` in the contract's JSON; always in English."""
    return {
        "id": outcome.id,
        "outcome": outcome.kind,
        "files": list(outcome.files),
        "detail": str(outcome.detail),
        "changed_since": list(outcome.since),
    }


def _remark(outcome: RecordOutcome, language: Language) -> Cell:
    """The title where the record holds or is about to, with what deserves saying; elsewhere the reason."""
    if outcome.kind not in ("pending", "applied") or not outcome.title:
        return Cell("", reason=outcome.detail)
    title = outcome.title_zh if language == "zh" and outcome.title_zh else outcome.title
    since = phrase("changed or laid out anew since: {files}", files=", ".join(outcome.since)) if outcome.since else ""
    return Cell(title, reason=Phrases(tuple(part for part in (since, outcome.note) if part)) if since else outcome.note)


def _where(outcome: RecordOutcome) -> str:
    if outcome.kind == "not-needed" or not outcome.spots:
        return ""
    first = outcome.spots[0]
    more = len(outcome.spots) - 1
    return f"{first.file.rpartition('/')[2]}:{first.line}" + (f" +{more}" if more else "")
