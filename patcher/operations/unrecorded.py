"""Marked lines that no record covers: hand edits that somebody should write a record for, or take out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.planning.outcome import RecordOutcome
    from patcher.tree import Tree

_NEAR = 6
"""Lines between a hand-made marker and the adopted place that it stands for."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked line, counted from 1."""

    file: str
    line: int


def marks_in_tree(
    tree: Tree, word: str, known: Collection[str], outcomes: Iterable[RecordOutcome], *, but: Collection[str] = ()
) -> tuple[Mark, ...]:
    """Markers that carry no id of `known` and stand at no place that a record adopted, in all files but some."""
    needles = {word.encode(), word.lower().encode(), word.upper().encode()}
    adopted = _adopted(outcomes)
    found: list[Mark] = []
    for file in tree.text_files():
        if file.path in but:
            continue
        content = file.read()
        if any(needle in content for needle in needles):
            found += marks_in_text(file.path, content.decode("utf-8", "replace"), word, known, adopted)
    return tuple(found)


def marks_in_text(
    path: str, text: str, word: str, known: Collection[str], adopted: Collection[tuple[str, int]]
) -> list[Mark]:
    from patcher.rewriting import markers

    return [
        Mark(path, marker.line)
        for marker in markers(text, word)
        if marker.record not in known
        and not any((path, marker.line + offset) in adopted for offset in range(-_NEAR, _NEAR + 1))
    ]


def _adopted(outcomes: Iterable[RecordOutcome]) -> set[tuple[str, int]]:
    return {(spot.file, spot.line) for outcome in outcomes if outcome.kind == "adopted" for spot in outcome.spots}


def marks_in_plan(
    texts: Iterable[tuple[str, str]], word: str, known: Collection[str], outcomes: Iterable[RecordOutcome]
) -> tuple[Mark, ...]:
    """The same for texts that are about to be written."""
    adopted = _adopted(outcomes)
    return tuple(mark for path, text in texts for mark in marks_in_text(path, text, word, known, adopted))
