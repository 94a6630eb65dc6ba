"""Marked lines that no record covers: hand edits that somebody should write a record for, or take out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from patcher.planning.outcome import RecordOutcome
from patcher.rewriting import markers
from patcher.tree import Ledger, Tree

_NEAR = 6
"""Lines between a hand-made marker and the adopted place that it stands for."""


@dataclass(frozen=True, slots=True)
class Mark:
    file: str
    line: int


def marks_without_record(tree: Tree, word: str, ledger: Ledger, outcomes: Iterable[RecordOutcome]) -> tuple[Mark, ...]:
    """Markers in the tree that carry no known record's id and stand at no place that a record adopted."""
    outcomes = tuple(outcomes)
    known = {outcome.id for outcome in outcomes} | set(ledger.records)
    adopted = {(spot.file, spot.line) for outcome in outcomes if outcome.kind == "adopted" for spot in outcome.spots}
    needles = {word.encode(), word.lower().encode(), word.upper().encode()}
    found = []
    for path, content in tree.texts():
        if not any(needle in content for needle in needles):
            continue
        for marker in markers(content.decode("utf-8", "replace"), word):
            ours = marker.record is not None and marker.record in known
            if not ours and not any((path, marker.line + offset) in adopted for offset in range(-_NEAR, _NEAR + 1)):
                found.append(Mark(path, marker.line))
    return tuple(found)
