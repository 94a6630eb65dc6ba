"""What `record` proposes: records that are proven, the changes that they stand for, and what is in none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patcher.i18n import Phrase, phrase
from patcher.recording.base import Base
from patcher.recording.grouping import Piece
from patcher.records.model import Record
from patcher.rewrite.marker import shown_line

if TYPE_CHECKING:
    from patcher.analysis.findings import Finding


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record that is proven, and what of the fork it stands for."""

    record: Record
    text: str
    pieces: tuple[Piece, ...]
    related: tuple[Record, ...] = ()
    """Records that are off and do the like; their reason says why they are."""

    @property
    def specific(self) -> bool:
        """Whether no edit of it is about mere lines."""
        return all(piece.made.specific for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Left:
    """What differs and is in no record. `line` counts from 1; 0 is the whole file."""

    file: str
    line: int
    why: Phrase


SKIPPED = phrase("skipped when it was asked about")
"""Why a change is left of which somebody at the terminal wanted no record."""


@dataclass(frozen=True, slots=True)
class Files:
    """The texts of the files that differ, without markers, and as the fork has them."""

    base: Mapping[str, str]
    """Without the files that the fork has added."""
    before: Mapping[str, str]
    """The base with what records say already; "" of a file that the fork has added."""
    after: Mapping[str, str]
    """Without markers, in the base's layout."""
    shown: Mapping[str, str]
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Of a file whose layout in `after` is not the fork's, the fork's line for each of its lines; both from 0."""
    laid_out: tuple[str, ...] = ()
    """Those of them that differ in more than blank lines."""

    def shown_line(self, file: str, index: int, word: str) -> int:
        """The line, from 1, of the fork's file that a line of `after` is; `index` counts from 0."""
        places = self.places.get(file, ())
        return max(1, shown_line(self.shown[file], word, places[index] if index < len(places) else index))


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that are to become one record. `name`: the id that was given to it; "" for one made of the place."""

    pieces: tuple[Piece, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The records that a fork's edits make, and what is in none."""

    base: Base
    files: Files
    records: tuple[Recorded, ...] = ()
    left: tuple[Left, ...] = ()
    changes: int = 0
    """Changes in all, those that are left among them."""
    known: tuple[Record, ...] = ()
    """Records that the fork has by hand: their edits are no changes."""
    repaired: tuple[Finding, ...] = ()
    """What the edits repair for the releases that were asked about."""


def line_of(piece: Piece, files: Files, word: str) -> int:
    """Where a change begins in the fork's file, from 1."""
    return files.shown_line(piece.file, piece.made.hunk.new[0], word)
