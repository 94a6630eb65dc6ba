"""Lines of a text that records have changed, as lines of the text that people have before them."""

from __future__ import annotations

from dataclasses import replace

from patcher.rewriting.outcome import (
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Outcome,
    Overlap,
    Rewritten,
    Unparseable,
)


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
    """For each line the one that it was; for a new line, the one that it stands behind."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, changed.splitlines(), base.splitlines(), autojunk=False).get_matching_blocks()

    def map_one(line: int) -> int:
        block = max((block for block in blocks if block.a < line), key=lambda block: block.a, default=blocks[0])
        return max(1, block.b + min(line - block.a, block.size))

    return tuple(map_one(line) for line in lines)
