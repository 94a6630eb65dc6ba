"""What came of one edit on one source text: a closed set, matched exhaustively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Candidate:
    """The place nearest to what an anchor asked for. `line` counts from 1."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The edit was made at `lines` (of the new source, from 1); `by_hand` places already had its effect."""

    source: str
    lines: tuple[int, ...]
    by_hand: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """No anchor is left and every place has the edit's effect. `marked`: a marker comment stands at one of them."""

    lines: tuple[int, ...]
    marked: bool


@dataclass(frozen=True, slots=True)
class AnchorMissing:
    """Fewer anchors than `expected` (`found`, which may be 0), and hand edits do not make up for them."""

    expected: int
    found: int
    nearest: Candidate | None = None


@dataclass(frozen=True, slots=True)
class AnchorAmbiguous:
    """More anchors than `expected`, at `lines`."""

    expected: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The anchor stands on a line that another record (`record`) has changed, and no `after` orders the two."""

    line: int
    record: str


@dataclass(frozen=True, slots=True)
class Unparseable:
    """The source, or what the edit would make of it, is no Python."""

    line: int
    message: str


Outcome: TypeAlias = Rewritten | AlreadyDone | AnchorMissing | AnchorAmbiguous | Overlap | Unparseable
