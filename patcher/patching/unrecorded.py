"""Marked lines that no record covers: hand edits that somebody should write a record for, or take out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.plan.outcome import Kind, RecordOutcome
    from patcher.records.model import Record
    from patcher.session.session import Session

_HOLDS: frozenset[Kind] = frozenset({"adopted", "applied", "pending", "resolved"})
"""Outcomes of records that may account for a marker without an id: some of their places were edited by hand."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked line, counted from 1."""

    file: str
    line: int


def marks_in_tree(
    session: Session, known: Collection[str], outcomes: Sequence[RecordOutcome], *, but: Collection[str] = ()
) -> tuple[Mark, ...]:
    """Markers that no record accounts for, in all files but some."""
    word = session.config.marker
    needles = {word.encode(), word.lower().encode(), word.upper().encode()}
    found: list[Mark] = []
    for file in session.tree.text_files():
        if file.path in but:
            continue
        content = file.read()
        if any(needle in content for needle in needles):
            found += marks_in_text(session, file.path, content.decode("utf-8", "replace"), known, outcomes)
    return tuple(found)


def marks_in_texts(
    session: Session, texts: Mapping[str, str], known: Collection[str], outcomes: Sequence[RecordOutcome]
) -> tuple[Mark, ...]:
    """The same for texts that are about to be written, or stand as they are."""
    return tuple(mark for path, text in texts.items() for mark in marks_in_text(session, path, text, known, outcomes))


def marks_in_text(
    session: Session, path: str, text: str, known: Collection[str], outcomes: Iterable[RecordOutcome]
) -> list[Mark]:
    """Markers that carry no id of `known` and stand at no place that has a record's effect, told from this text."""
    from patcher.rewrite import markers

    word = session.config.marker
    found = [marker.line for marker in markers(text, word) if marker.record not in known]
    if not found:
        return []
    holding = {outcome.id for outcome in outcomes if outcome.kind in _HOLDS}
    accounted: set[int] = set()
    for record in session.records if holding else ():
        if record.id in holding and path in record.files:
            accounted |= _accounted_for(record, path, text, word, session.environment.version("verl") or "")
    return [Mark(path, line) for line in found if line not in accounted]


def _accounted_for(record: Record, path: str, text: str, word: str, verl: str) -> set[int]:
    """The marked lines of a text that the places with a record's effect account for."""
    from patcher.plan.situation import belongs
    from patcher.rewrite import markers_of_edit, markers_of_pattern

    decide = belongs(verl)
    lines: set[int] = set()
    for edit in record.edits:
        if edit.file == path and decide(edit) is not False:
            lines |= markers_of_edit(text, edit, word)
    for pattern in record.resolved:
        lines |= markers_of_pattern(text, pattern, word)
    return lines
