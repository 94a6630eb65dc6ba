"""Lines of a text that records have changed, as lines of the text that people have before them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from patcher.rewrite.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)

if TYPE_CHECKING:
    from difflib import Match


def on_base(outcome: Outcome, base: str, changed: str) -> Outcome:
    """The outcome of an edit on `changed`, its lines counted in `base`. What was rewritten counts in the new text."""
    if base == changed:
        return outcome
    match outcome:
        case AlreadyDone(lines, marked):
            return AlreadyDone(_mapped(lines, base, changed), marked)
        case AnchorAmbiguous(expected, lines):
            return AnchorAmbiguous(expected, _mapped(lines, base, changed))
        case AnchorMissing(_, _, nearest) if nearest is not None:
            return replace(outcome, nearest=replace(nearest, line=_mapped((nearest.line,), base, changed)[0]))
        case Overlap(line, _) | Unparseable(line, _):
            return replace(outcome, line=_mapped((line,), base, changed)[0])
        case AnchorMissing() | Rewritten():
            return outcome


def _mapped(lines: tuple[int, ...], base: str, changed: str) -> tuple[int, ...]:
    return tuple(on_other(line, changed, base) for line in lines)


def on_other(line: int, text: str, other: str) -> int:
    """The line of `other` that a line of `text` is; for a new one, the one whose place it takes."""
    blocks = _blocks(text, other)
    block = max((block for block in blocks if block.a < line), key=lambda block: block.a, default=None)
    if block is None:
        return 1
    return min(block.b + min(line - block.a, block.size + 1), max(1, len(other.splitlines())))


@lru_cache(maxsize=32)
def _blocks(text: str, other: str) -> list[Match]:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, text.splitlines(), other.splitlines(), autojunk=False).get_matching_blocks()
